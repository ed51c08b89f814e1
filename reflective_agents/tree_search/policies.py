"""Which policies sample the candidates of a tree search."""

from collections.abc import Mapping

from langchain_core.language_models import BaseChatModel

from reflective_agents.models.sending import Listener
from reflective_agents.nodes.step import Step
from reflective_agents.state.context import Model
from reflective_agents.state.families import StepsContext, TreeContext
from reflective_agents.state.tree import TreeNode
from reflective_agents.tree_search.candidates import Branch
from reflective_agents.tree_search.chat_policies import ChatSampling
from reflective_agents.tree_search.policy import Follow, Sampling
from reflective_agents.tree_search.task_policies import ActSampling, PaperSampling
from reflective_agents.tree_search.worlds import OpenWorld, TaskWorld


class Arms:
    """Several policies; each job names one."""

    def __init__(self, policies: Mapping[str, Sampling]) -> None:
        self.policies = policies

    def calls(self, width: int) -> int:
        """Count the calls of the policy that takes the most."""
        return max(policy.calls(width) for policy in self.policies.values())

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Let the policy of the job sample."""
        await self.policies[branch.job.get("arm", "")].sample(branch, width, follow)

    async def conclude(self, branch: Branch, listener: Listener | None = None) -> str:
        """Let the policy conclude that has made the last step."""
        return await self._of(branch.path[-1]).conclude(branch, listener)

    def author(self, node: TreeNode) -> BaseChatModel:
        """Return the model that has made a node; the first, if it is the root."""
        return self._of(node).model

    def _of(self, node: TreeNode) -> Sampling:
        first, *_ = self.policies.values()
        return self.policies.get(node.get("model", ""), first)


def sampling_for(step: Step[TreeContext], world: OpenWorld | TaskWorld, model: Model = None) -> Sampling:
    """Return the policy that samples each step of a world on its own."""
    if isinstance(world, OpenWorld):
        return ChatSampling(step, world.tools, model)
    on_paper = isinstance(step.context, StepsContext) and step.context.acting == "paper"
    return PaperSampling(step, world, model) if on_paper else ActSampling(step, world, model)
