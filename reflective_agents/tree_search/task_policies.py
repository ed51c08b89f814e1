"""Policies that sample the steps of an agent in an environment."""

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from reflective_agents.models.calls import request
from reflective_agents.models.capabilities import ChatModel, takes_stop, with_tools
from reflective_agents.models.sending import Listener
from reflective_agents.models.toolless import guess_in
from reflective_agents.nodes.acting.actions import act_tool
from reflective_agents.nodes.acting.react_text import action_of, call_text, parse_step, parsed_call
from reflective_agents.nodes.asking.sampling import calls_for, sample
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import lats as prompts
from reflective_agents.state.context import Model
from reflective_agents.state.families import TreeContext
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.tree import TreeNode
from reflective_agents.text.actions import read_answer
from reflective_agents.text.labels import without_marker
from reflective_agents.tree_search.candidates import Branch, Candidate
from reflective_agents.tree_search.conversation import refusals, with_closing
from reflective_agents.tree_search.lessons import lessons_text
from reflective_agents.tree_search.policy import Follow, Sampling
from reflective_agents.tree_search.worlds import TaskWorld


class ActSampling(Sampling):
    """Steps of an agent in an environment, as calls of the tool `act`: the task once, and the steps in turns."""

    def __init__(self, step: Step[TreeContext], world: TaskWorld, model: Model = None) -> None:
        super().__init__(step, model)
        self.world, self.environment = world, world.environment

    def bound(self, branch: Branch) -> ChatModel:
        """Return the model with the tool `act`."""
        return with_tools(self.model, [act_tool(self.environment)])

    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """Return the task and the steps so far, and then what changes from request to request."""
        steps: list[AnyMessage] = []
        for node in branch.path:
            if node.get("action"):
                steps += _turns(node)
        if not closing and self._ends(branch):
            closing = prompts.LAST_ACTION.strip()
        return prompts.ACT_TASK.format_messages(
            task=self.world.task,
            conversation=list(branch.conversation[:-1]),
            request=branch.request,
            lessons=lessons_text(branch),
            steps=with_closing(steps, closing),
        )

    def _ends(self, branch: Branch) -> bool:
        """Tell whether the next step has to end the task with its action."""
        return not branch.may_act and self.environment.final_action("") is not None

    def read(self, reply: AIMessage, index: int) -> Candidate:
        """Read the first action, also one written without a call; an answer becomes the action that gives it."""
        if reply.tool_calls:
            return Candidate(index, thought=reply.text, action=call_text(reply.tool_calls[0]), guess=guess_in(reply))
        if reply.invalid_tool_calls:
            return Candidate(index, action="")
        move = parsed_call(reply, self.environment)
        return Candidate(index, thought=move["thought"], action=move["action"] or self._giving(move["answer"]))

    def _giving(self, answer: str | None) -> str:
        return action_of(answer or "", self.environment)

    async def conclude(self, branch: Branch, listener: Listener | None = None) -> str:
        """Ask for an answer; nothing may be called."""
        chat = with_tools(self.model, [act_tool(self.environment)], "none")
        prompt = self.prompt(branch, prompts.CONCLUDE)
        reply, *_ = await request(chat, prompt, self.step.meter, listener=listener)
        return reply.text


def _turns(node: TreeNode) -> list[AnyMessage]:
    """Return a step as a call and its result, followed by the judge's critique."""
    call = tool_call(name="act", args={"action": node.get("action", "")}, id=f"call_{node['id']}")
    turns: list[AnyMessage] = [AIMessage(node.get("thought", ""), tool_calls=[call])]
    turns.append(ToolMessage(node.get("observation", ""), tool_call_id=call["id"], name="act"))
    if node["critique"]:
        turns.append(HumanMessage(quoted("critique", node["critique"])))
    return turns


class PaperSampling(ActSampling):
    """Steps of an agent in an environment, as one text: a thought and an action (ReAct)."""

    def bound(self, branch: Branch) -> ChatModel:
        """Return the model without tools."""
        return self.model

    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """Return the task and the steps so far, and then what changes from request to request."""
        taken = [node for node in branch.path if node.get("action")]
        steps = ""
        for number, node in enumerate(taken, 1):
            steps += _lines(number, node)
        if closing:
            steps += closing
        else:
            last = prompts.LAST_ACTION if self._ends(branch) else ""
            steps += f"{last}Thought {len(taken) + 1}:"
        return prompts.ACT_TEXT.format_messages(
            task=self.world.task,
            conversation=list(branch.conversation[:-1]),
            request=branch.request,
            lessons=lessons_text(branch),
            steps=steps,
        )

    def read(self, reply: AIMessage, index: int) -> Candidate:
        """Read thought and action; an answer without an action becomes the action that gives it."""
        move = parse_step(reply.text, environment=self.environment)
        action = move["action"] or self._giving(move["answer"])
        guess = read_answer(reply.text) or ""
        return Candidate(index, thought=move["thought"], action=action, guess=guess)

    def options(self) -> JsonObject:
        """End the step before an observation."""
        return {"stop": ["\nObservation"]} if takes_stop(self.model) else {}

    async def conclude(self, branch: Branch, listener: Listener | None = None) -> str:
        """Ask for an answer from the steps of the branch."""
        return await Sampling.conclude(self, branch, listener)


def _lines(number: int, node: TreeNode) -> str:
    lines = [f"Thought {number}: {node.get('thought', '')}", f"Action {number}: {node.get('action', '')}"]
    lines.append(f"Observation {number}: {node.get('observation', '')}")
    if node["critique"]:
        lines.append(quoted("critique", node["critique"]))
    return "".join(f"{line}\n" for line in lines)


class ListProposals(ActSampling):
    """Asks for lists of next steps, one step a line (the propose prompt of Tree of Thoughts).

    Args:
        step: The step of the graph, with the settings and the meter.
        world: The task.
        lists: How many lists are sampled at once.
    """

    template = prompts.LIST

    def __init__(self, step: Step[TreeContext], world: TaskWorld, lists: int) -> None:
        super().__init__(step, world)
        self.lists = lists

    def calls(self, width: int) -> int:
        """Count the calls: one where the provider takes n, else one per list."""
        return calls_for(self.model, self.lists)

    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """Return the prompt with the state at the end of the branch: for such tasks nothing else matters."""
        if closing:
            return super().prompt(branch, closing)
        state = quoted("task", self.environment.public(self.world.state(branch.path[-1])))
        return self.template.format_messages(task=self.world.task, state=state, lessons=lessons_text(branch))

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Ask for the lists at once; each line is a step. The more lists propose it, the more samples it has."""
        prompt = [*self.prompt(branch), *refusals(branch)]
        replies = await sample(self.step, self.model, prompt, self.lists)
        steps: list[Candidate] = []
        for reply in replies:
            for line in reply.text.splitlines():
                if action := without_marker(line):
                    steps.append(Candidate(len(steps), action=action))
        await follow(steps)
