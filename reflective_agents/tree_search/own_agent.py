"""The policy of an agent of the user's own: each of its runs is a whole trajectory, with an answer at its end."""

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from reflective_agents.models.sending import Listener
from reflective_agents.nodes.acting.own_agent import Agent, AgentReply, ask_agent
from reflective_agents.nodes.acting.react_text import action_of, parse_answer
from reflective_agents.nodes.asking.task_prompt import short_task_prompt
from reflective_agents.nodes.memo import each_to_its_end
from reflective_agents.nodes.step import Step
from reflective_agents.state.families import TreeContext
from reflective_agents.state.tree import TreeNode
from reflective_agents.tree_search.candidates import Branch, Candidate
from reflective_agents.tree_search.lessons import lessons_messages
from reflective_agents.tree_search.policy import Follow
from reflective_agents.tree_search.worlds import OpenWorld, TaskWorld


class OwnAgent:
    """Has an agent answer once for each trajectory.

    Args:
        step: The step of the graph, with the settings and the meter.
        world: The task.
        agent: The agent.
    """

    def __init__(self, step: Step[TreeContext], world: OpenWorld | TaskWorld, agent: Agent) -> None:
        self.step, self.world, self.agent = step, world, agent

    def calls(self, width: int) -> int:
        """Count one call for each trajectory; how many more the agent makes shows only in its run."""
        return width

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Let the agent answer `width` times at once."""

        async def answer(index: int) -> None:
            await follow([self._candidate(await self._ask(branch), index)])

        await each_to_its_end([answer(index) for index in range(width)])

    async def conclude(self, branch: Branch, listener: Listener | None = None) -> str:
        """Ask for an answer once more."""
        return (await self._ask(branch)).answer

    def author(self, node: TreeNode) -> None:
        """Return None: the agent has made all nodes."""
        return None

    async def _ask(self, branch: Branch) -> AgentReply:
        *earlier, last = branch.conversation
        task: list[BaseMessage] = [last]
        if isinstance(self.world, TaskWorld):
            briefed = short_task_prompt(self.world.environment, examples=self.step.context.few_shot)
            task = [HumanMessage(briefed + self.world.environment.public(dict(self.world.start)))]
        return await ask_agent(self.agent, [*earlier, *lessons_messages(branch), *task], self.step.meter)

    def _candidate(self, reply: AgentReply, index: int) -> Candidate:
        if isinstance(self.world, OpenWorld):
            return Candidate(index, messages=[AIMessage(reply.answer)], thought=reply.steps)
        answer = parse_answer(reply.answer, self.world.environment) or reply.answer
        action = action_of(answer, self.world.environment)
        return Candidate(index, thought=reply.steps or reply.answer, action=action)
