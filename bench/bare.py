"""The ceiling: an ASGI application that reads the request and answers with a constant of a tool call's size.

bare.py PORT
"""

import sys

import uvicorn

ANSWER = (
    b"event: task_id\r\ndata: 0123456789abcdef0123456789abcdef\r\n\r\n"
    b'event: end\r\ndata: {"ok":true,"output":{"blocks":[{"text":"Correct!","detail":null,"type":"text"}],'
    b'"metadata":null,"reward":1.0,"finished":false}}\r\n\r\n'
)
HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"content-length", b"%d" % len(ANSWER))]


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body", False):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": ANSWER})


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
    )
