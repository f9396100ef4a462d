"""`reasoning_gym.py`: each data set is played to the reward of its verifier, and no task holds an answer."""

from __future__ import annotations

import pytest
from example_files import load

DATA_SETS = [
    "chain_sum",
    "cryptarithm",
    "family_relationships",
    "knights_knaves",
    "letter_counting",
    "mini_sudoku",
    "shortest_path",
    "simple_equations",
    "simple_geometry",
    "survo",
    "syllogism",
    "time_intervals",
]


def text(blocks):
    return load("driver").text_of(blocks)


def test_each_data_set_is_an_environment_of_its_own(serve):
    assert serve("reasoning_gym").run(lambda driver: driver.get("/list_environments")) == DATA_SETS


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("data_set", DATA_SETS)
def test_the_verifier_pays_for_the_answer_and_for_nothing_else(serve, data_set, split):
    served = serve("reasoning_gym")
    environment = next(cls for cls in served.module.ENVIRONMENTS if cls.name() == data_set)

    async def play_some(driver):
        played = []
        for index in (0, 1, 4_999, 9_999):
            item = environment.item(split, index)
            for answer in (item["answer"], "no answer at all"):
                shown = []

                def act(blocks, shown=shown, answer=answer):
                    shown.append(text(blocks))
                    return "submit", {"answer": answer}

                episode = await driver.play(data_set, {"split": split, "index": index}, act)
                assert shown == [item["question"]]
                played.append((episode.failure, episode.rewards))
        return played

    played = served.run(play_some)
    assert played[::2] == [(None, [1.0])] * 4
    assert all(failure is None and 0 <= reward <= 0.05 for failure, (reward,) in played[1::2])


@pytest.mark.parametrize("data_set", DATA_SETS)
def test_a_task_is_a_split_and_an_index_and_no_answer(serve, data_set):
    served = serve("reasoning_gym")

    async def ask(driver):
        return (
            await driver.post(f"/{data_set}/num_tasks", {"split": "train"}),
            await driver.post(f"/{data_set}/num_tasks", {"split": "test"}),
            await driver.post(f"/{data_set}/task", {"split": "train", "index": 999_999}),
            await driver.post(f"/{data_set}/task_range", {"split": "test", "start": 9_998, "stop": None}),
        )

    train, test, last, end = served.run(ask)
    assert (train["num_tasks"], test["num_tasks"]) == (1_000_000, 10_000)
    assert last["task"] == {"split": "train", "index": 999_999}
    assert end["tasks"] == [{"split": "test", "index": 9_998}, {"split": "test", "index": 9_999}]


@pytest.mark.parametrize("body", [{"split": "test", "index": 10_000}, {"split": "test", "index": -1}])
def test_an_index_outside_the_split_opens_no_episode(serve, body):
    served = serve("reasoning_gym")

    async def create(driver):
        sid = (await driver.post("/create_session"))["sid"]
        await driver.post("/create", {"env_name": "survo", **body}, sid)

    with pytest.raises(load("driver").Failure, match="HTTP 400"):
        served.run(create)


def test_nothing_lists_a_million_tasks(serve):
    with pytest.raises(load("driver").Failure, match=r"(?s)HTTP 501.*index-based API"):
        serve("reasoning_gym").run(lambda driver: driver.post("/survo/tasks", {"split": "train"}))


@pytest.mark.parametrize("data_set", DATA_SETS)
def test_the_splits_share_no_seed(data_set):
    module = load("reasoning_gym")
    assert not set(module.SEEDS["train"]) & set(module.SEEDS["test"])
    # the ranges are only as good as this: item i with seed s is what item 0 is with seed s + i
    moved = module.factory.create_dataset(data_set, seed=module.SEEDS["test"][7], size=1)
    assert module.items(data_set, "test")[7]["question"] == moved[0]["question"]
