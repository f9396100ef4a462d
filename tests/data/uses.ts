// How people use the printed types, and what must not compile. Read beside the printed file, as ./ors
import type {
  Blocks, CreateSession, GetTask, GetTaskRange, ImageBlock, JSONObject, JSONValue, ListToolsOutput, RunToolOutput,
  Split, Task, TextBlock, ToolCall, ToolOutput, ToolSpec,
} from "./ors"

// The kind of a block tells which keys it has.
export function show(blocks: Blocks): string[] {
  return blocks.map((block) => {
    switch (block.type) {
      case "text":
        return block.text
      case "image":
        return `data:${block.mimeType};base64,${block.data}`
    }
  })
}

// `ok` tells whether there is an output or an error.
export function reward(result: RunToolOutput): number {
  if (!result.ok) throw new Error(`${result.reason ?? "failed"}: ${result.error}`)
  // @ts-expect-error a result that is ok has no error
  void result.error
  return result.output.reward ?? 0
}

export function unchecked(result: RunToolOutput): void {
  // @ts-expect-error whether there is an output is not known yet
  void result.output
}

export const value: JSONValue = { a: [1, "b", null, { c: true }] }
export const task: Task = { question: "2+2", nested: { any: ["thing"] } }
export const absent: TextBlock = { type: "text", text: "x" }
export const nothing: TextBlock = { type: "text", text: "x", detail: null }
export const range: GetTaskRange = { split: "train", stop: null }
export const noParameters: ToolSpec = { name: "look", description: "", input_schema: null }

// @ts-expect-error not JSON
export const notJson: JSONValue = { a: undefined }
// @ts-expect-error a list is no object
export const notObject: JSONObject = [1]
// @ts-expect-error a block says what it is
export const noType: TextBlock = { text: "x" }
// @ts-expect-error a text block is not of another type
export const wrongType: TextBlock = { type: "image", text: "x" }
// @ts-expect-error an image has a MIME type
export const noMime: ImageBlock = { type: "image", data: "" }
// @ts-expect-error there are two kinds of blocks
export const sound: Blocks = [{ type: "sound", data: "" }]
// @ts-expect-error a tool says that it takes nothing with null
export const noSchema: ToolSpec = { name: "x", description: "" }
// @ts-expect-error a tool's specification has no more keys
export const moreKeys: ToolSpec = { name: "x", description: "", input_schema: null, title: "x" }
// @ts-expect-error an output says whether the episode is over
export const unfinished: ToolOutput = { blocks: [] }
// @ts-expect-error a reward is a number
export const textReward: ToolOutput = { blocks: [], finished: true, reward: "1" }
// @ts-expect-error an error has no output
export const bothResults: RunToolOutput = { ok: false, output: { blocks: [], finished: true } }
// @ts-expect-error a call has an input, even an empty one
export const noInput: ToolCall = { name: "x" }
// @ts-expect-error there are three types of splits
export const hard: Split = { name: "hard", type: "hard" }
// @ts-expect-error an index is a number
export const textIndex: GetTask = { split: "train", index: "0" }
// @ts-expect-error secrets are text
export const secret: CreateSession = { task_spec: {}, secrets: { key: 1 } }
// @ts-expect-error tools are a list
export const oneTool: ListToolsOutput = { tools: noParameters }
