"""Language Agent Tree Search (Zhou et al. 2024, arXiv 2310.04406).

    begin -> start -> expand -> expand -> ... -> finish

`start` makes the root. Then six operations are repeated until something ends the run (section 4.2):

    select         walk from the root to a leaf, at each level to the child with the highest UCT score
    expand         sample n candidates at the leaf, and let each act
    evaluate       V = lambda * judge + (1 - lambda) * self-consistency, unless the environment rewards the candidate
    simulate       expand the best child in turn, down to the end of the task
    backpropagate  add the reward that was met there to every node on the way up to the root
    reflect        draw a lesson from each failed trajectory, for all prompts that follow

The best answer wins, wherever in the tree it stands. Open questions are searched with tools and without simulation; in
an environment the paper's settings hold. The formulas are in `tree_search/algorithms/mcts.py`, the judge is in
`tree_search/values.py`, and what it is told in `prompts/lats.py`.
"""

from collections.abc import Sequence
from functools import partial

from reflective_agents.nodes.asking.chat import complete
from reflective_agents.nodes.asking.transcript import around, quoted
from reflective_agents.nodes.memo import at_once
from reflective_agents.nodes.step import Step, Update, node
from reflective_agents.prompts import lats as prompts
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.state.tree import Lesson, SearchState, TreeNode
from reflective_agents.tree_search.algorithms.gumbel import Gumbel
from reflective_agents.tree_search.algorithms.mcts import Mcts
from reflective_agents.tree_search.candidates import Branch, Candidate, Grade, trajectory_text
from reflective_agents.tree_search.chat_policies import ListedCalls
from reflective_agents.tree_search.graph import search_graph
from reflective_agents.tree_search.job import ExpansionJob, NodeByState, TreeSearch
from reflective_agents.tree_search.job_result import JobResult
from reflective_agents.tree_search.label_values import LabelJudge, hope
from reflective_agents.tree_search.loop import SearchStep
from reflective_agents.tree_search.policies import sampling_for
from reflective_agents.tree_search.task_policies import ListProposals
from reflective_agents.tree_search.values import Judge, Value
from reflective_agents.tree_search.worlds import TaskWorld, world_of


@node(LatsContext)
async def expand(state: SearchState, step: Step[LatsContext]) -> Update:
    """Take rollouts further, `parallel` leaves at once: a virtual loss on its way keeps the next one off a leaf."""
    async with SearchStep(state, step, await lats(state, step)) as tree:
        while tree.goes_on:
            while leaf := tree.select():  # by UCT; a simulation goes on from its best child: Mcts.choose
                tree.start(leaf)  # expand, evaluate, reflect: Rollout.run
            for leaf, result in await tree.finished():
                tree.backpropagate(leaf, result)  # Mcts.learn
    return tree.update()


class Rollout(ExpansionJob):
    """What happens at a leaf. `failed` are the answers that have a reflection already, of which there are at most
    `max_lessons`."""

    def __init__(
        self, search: TreeSearch, branch: Branch, node_by_state: NodeByState, *, failed: set[str], max_lessons: int
    ) -> None:
        super().__init__(search, branch, node_by_state)
        self.failed, self.max_lessons = failed, max_lessons

    async def run(self) -> JobResult:
        """Expand the leaf, evaluate its children, and reflect on those that failed."""
        candidates = await self.expand()
        await self.evaluate(candidates)
        self.add_children(candidates)
        await self.reflect(candidates)
        return self.result

    async def reflect(self, candidates: Sequence[Candidate]) -> None:
        """Draw lessons from trajectories that have failed, unless one has solved the task."""
        nodes = [child.node for child in self.result.children]
        if self.max_lessons and not any(node["solved"] for node in nodes):
            pairs = zip(candidates, nodes, strict=True)
            lessons = await at_once([self._lesson(*pair) for pair in pairs])
            self.result.lessons = [lesson for lesson in lessons if lesson]

    async def _lesson(self, candidate: Candidate, node: TreeNode) -> Lesson | None:
        """Reflect on a trajectory once for each answer. One that ended without an answer is known by its last state."""
        has_ended = candidate.final or candidate.reward is not None
        if node["score"] is None or not has_ended:
            return None
        answer = self.world.answer(node) or self.world.key(candidate)
        if not answer or answer in self.failed or len(self.failed) >= self.max_lessons:
            return None
        self.failed.add(answer)
        trajectory = trajectory_text([*self.branch.path, candidate])
        prompt = prompts.REFLECT.format_messages(
            task=self.world.task,
            request=self.branch.request,
            trajectory=around("trajectory", trajectory),
            verdict=quoted("verdict", _verdict(candidate, node)),
        )
        try:
            lesson = await complete(self.step, self.step.context.model, prompt)
        except (LimitReached, ModelFailed) as stop:
            self.result.stops.append(stop)
            return None
        return Lesson(node=node["id"], answer=answer, text=lesson.strip())


def _verdict(candidate: Candidate, node: TreeNode) -> str:
    """Return what was said of a trajectory, and by whom."""
    if candidate.reward is not None:
        given = "The environment gave it a reward"
    elif candidate.is_rewarded:
        given = "The verifiers gave it a score"
    else:
        given = "A judge gave it a score"
    return f"{given} of {node['score']:.2f}, where 1 is the best.\n{node['critique']}".strip()


class StateValue(Value):
    """The value of a state: V(s) = lambda * LM(s) + (1 - lambda) * SC(s) (equation 2), where LM is the judge's score
    and SC self-consistency, the share of the samples that propose the same, as far as the judge leaves it a hope: a
    step into a dead end is worth nothing, however often it is proposed."""

    def __init__(self, judge: Value, weight: float) -> None:
        self.judge, self.weight = judge, weight

    def calls(self, width: int) -> int:
        """Count the calls of the judge, which is not asked where it does not count."""
        return self.judge.calls(width) if self.weight else 0

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Ask the judge, where the score decides something."""
        if not decides(branch, candidate):
            return None
        return await self.judge.grade(branch, candidate) if self.weight else Grade(0.0)

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Mix its scores with self-consistency."""
        candidates = [candidate for candidate in candidates if decides(branch, candidate)]
        await self.judge.compare(branch, candidates)
        if self.weight == 1:
            return
        samples = sum(candidate.samples for candidate in candidates)
        for candidate in candidates:
            if candidate.grade is not None and not candidate.is_rewarded:
                self._mix(candidate.grade, candidate.samples / samples)

    def _mix(self, grade: Grade, share: float) -> None:
        judge = grade.score
        consistency = share * hope(grade) if self.weight else share
        grade.score = self.weight * judge + (1 - self.weight) * consistency
        grade.terms |= {"judge": judge, "consistency": consistency}


def decides(branch: Branch, candidate: Candidate) -> bool:
    """Return whether a candidate's score decides something. That of a first step does not: there is nothing else to go
    on from. A first answer has to be accepted."""
    return bool(branch.path) or candidate.answers


async def lats(state: SearchState, step: Step[LatsContext]) -> TreeSearch:
    """Set the tree search up as the settings say."""
    context = step.context
    world = await world_of(state, step)
    is_task = isinstance(world, TaskWorld)
    judge = Judge(step, world.task, together=context.grading == "together")
    if is_task and context.grades == "labels":
        judge = LabelJudge(step, world, context.grade_samples)
    policy = sampling_for(step, world)
    if context.proposals == "list":
        if isinstance(world, TaskWorld):
            policy = ListProposals(step, world, context.lists)
        elif world.tools:
            policy = ListedCalls(step, world.tools, context.lists)
    return TreeSearch(
        step,
        state["run_id"],
        algorithm(context, state["request"]),
        world,
        policy,
        StateValue(judge, context.judge_weight),
        revise_answers=is_task or context.revise_answers,
        sample_root=not is_task,
        expand_from=context.expand_from,
        job=partial(Rollout, failed=failed_answers(state), max_lessons=context.max_lessons),
    )


def failed_answers(state: SearchState) -> set[str]:
    """Return the answers that have a reflection already."""
    return {lesson["answer"] for lesson in state["lessons"] if lesson["node"]}


def algorithm(context: LatsContext, request: str) -> Mcts:
    """Return the algorithm that selects; the draws of one request are always the same."""
    mcts = Mcts(context.n, context.exploration_weight, context.simulate, context.max_rollouts)
    if context.selection == "uct":
        return mcts
    rollouts = context.max_rollouts or context.max_expansions
    return Gumbel(**vars(mcts), considered=context.n, rollouts=rollouts, seed=request)


builder = search_graph("lats", LatsContext, lats, expand=expand)
graph = builder.compile(name="lats")
