// Tasks that began at another node: connects the known tasks of this node with those of the others. Source: ADR 34.

import Type from 'typebox';
import { compileShape } from '../../domain/errors/validation.ts';
import type { McpEndpoint } from '../../protocol/endpoint-types.ts';
import type { PeerAnswerer, PeerQuestions } from './peer-questions.ts';

const PATH = '/peer/task';
/** The longest wait for the other nodes, in ms. */
const WAIT_MS = 1_000;

const TASK_ON_NODE = compileShape(
  Type.Object({
    instances: Type.Array(Type.String()),
    tools: Type.Optional(Type.Array(Type.String())),
    isOthers: Type.Boolean(),
  }),
  'body',
);

/** Asks the others from now on. Returns the path of the questions, and the answer to those of others. */
export function shareTasks(tasks: McpEndpoint['tasks'], peers: PeerQuestions): [string, PeerAnswerer] {
  tasks.setPeers({
    ask: ({ owner, pathName }, taskId) => {
      const [, ...others] = peers.lives();
      if (others.length === 0) return undefined;
      const query = new URLSearchParams(
        pathName === undefined ? { id: taskId } : { id: taskId, template: pathName },
      );
      const question = { principal: owner.id, target: `${PATH}?${query}`, waitMs: WAIT_MS };
      return Promise.all(others.map((life) => peers.ask(life, question, TASK_ON_NODE)));
    },
  });
  const answer: PeerAnswerer = (id, query) =>
    tasks.lookUp({ owner: { id }, pathName: query.get('template') ?? undefined }, query.get('id') ?? '');
  return [PATH, answer];
}
