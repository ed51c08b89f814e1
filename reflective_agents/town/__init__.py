"""The simulation of Generative Agents (arXiv 2304.03442): a town whose agents remember, plan, meet and talk."""
