// Requests about tasks of the legacy era. A backend keeps tasks by conversation, so clients that share one could see, read and
// cancel the tasks of each other. The routes of calls decide which conversation takes such a request.

import type { ExchangeRequest, FinalEvent } from '../domain/exchange.ts';
import { RPC } from '../domain/jsonrpc.ts';

/** True when a request starts a task or refers to one. Source: MCP 2025-11-25 basic/utilities/tasks. */
export function isAboutTask({ method, params }: ExchangeRequest): boolean {
  if (method === 'tools/call') return params?.task !== undefined;
  return method.startsWith('tasks/');
}

/** The answer where clients share a conversation all the same. */
export const NO_TASKS: FinalEvent = {
  kind: 'error',
  error: {
    code: RPC.methodNotFound,
    message: 'Tasks need a process of their own, which the template does not allow.',
  },
};
