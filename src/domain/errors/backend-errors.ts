// The errors of backends and instances that cannot carry out a call. Those that are made of the answer of a backend are in
// calls/answer-errors.ts.

import type { ConnectionNeed } from '../instances/account-connection.ts';
import { definedFields } from '../json/json.ts';
import { type Delivered, type ErrorFacts, GatewayError, type HttpRefusal, retryAfter } from './errors.ts';
import { quoted, withHint } from './request-errors.ts';

/** `why`: the reasons of single instances, as clauses; '' without any. `plainWhy`: those that every caller gets. */
export function noHealthyInstance(template: string, why = '', plainWhy = ''): GatewayError {
  const because = (clauses: string): string => (clauses === '' ? '' : `: ${clauses}`);
  const problem = `No instance of "${template}" is healthy right now`;
  const plainMessage = `${problem}${because(plainWhy)}.`;
  const message = `${problem}${because(why)}.`;
  return new GatewayError('NO_HEALTHY_INSTANCE', message, { ...retryAfter(2), plainMessage });
}

/** The instance is registered, but cannot be reached from this node. `why` says where it runs, as a clause. */
export function instanceElsewhere(id: string, why: string): GatewayError {
  const plainMessage = `Instance "${id}" cannot be used on this node.`;
  const message = `${plainMessage.slice(0, -1)}: ${why}.`;
  return new GatewayError('NO_HEALTHY_INSTANCE', message, { delivered: 'no', plainMessage });
}

/** `near`: the tool that was probably meant, if any. */
export function toolNotFound(tool: string, owner: string, near?: string): GatewayError {
  const message = withHint(`"${owner}" has no tool named ${quoted(tool)}`, near);
  return new GatewayError('TOOL_NOT_FOUND', message, definedFields({ suggestion: near }));
}

/** The view of a call, which has not started, does not have its tool, prompt or resource any more. */
export function notInView(view: string, method: string, tool: string | undefined): GatewayError {
  if (tool !== undefined) return toolNotFound(tool, view);
  const code = method === 'prompts/get' ? 'PROMPT_NOT_FOUND' : 'RESOURCE_NOT_FOUND';
  return new GatewayError(code, `"${view}" has changed, and does not offer this any more.`);
}

/** Too many requests wait until an instance of the template has capacity, or has started. */
export function queueFull(template: string): GatewayError {
  const message = `No instance of "${template}" is free, and the queue of its requests is full.`;
  return new GatewayError('QUEUE_FULL', message, retryAfter(1));
}

type BackendFacts = Pick<
  ErrorFacts,
  'cause' | 'stderr' | 'health' | 'refusal' | 'isSessionLost' | 'isRepaired'
> & {
  delivered: Delivered;
};

/** A backend cannot be used. `reason`: a clause, such as "exited with code 7"; it may name paths of the machine. */
export function backendUnavailable(reason: string, details: BackendFacts): GatewayError {
  return new GatewayError('BACKEND_UNAVAILABLE', `The backend is unavailable: ${reason}.`, {
    ...details,
    ...(details.delivered === 'no' ? retryAfter(1) : {}),
    reason,
    plainMessage: 'The backend is unavailable.',
  });
}

/**
 * A backend at an endpoint is unavailable. Unlike `backendUnavailable`: every caller gets the reason, which names no
 * path of the machine.
 */
export function endpointUnavailable(reason: string, details: BackendFacts): GatewayError {
  const { code, message, facts } = backendUnavailable(reason, details);
  const { plainMessage: _, ...others } = facts;
  return new GatewayError(code, message, others);
}

/**
 * A backend answered with an HTTP status instead of a result. A redirect or a 4xx is its answer: the same request
 * gets the same again, so there is no Retry-After. `said`: its own words, '' if none. Source: ADR 107.
 */
export function backendRefused(refusal: HttpRefusal, said: string, details: BackendFacts): GatewayError {
  const { status } = refusal;
  const isCredential = status === 401 || status === 403;
  const what = `answered ${status}${isCredential ? ` (${CREDENTIALS_REFUSED})` : ''}`;
  const isRedirect = status < 400; // then the words say where to
  const reason = isRedirect ? said : said === '' ? what : `${what}: ${said}`;
  const facts = { ...details, refusal };
  if (status >= 500) return endpointUnavailable(reason, facts);
  const end = /[.!?]$/.test(reason) ? '' : '.';
  return new GatewayError(
    'BACKEND_UNAVAILABLE',
    `The server ${isRedirect ? 'redirects: ' : ''}${reason}${end}`,
    { ...facts, reason },
  );
}

const CREDENTIALS_REFUSED = "the gateway's credentials for the server were refused";

/** The backend wants an account that is not connected, or no longer. The call was not carried out. */
export function connectionRequired(connection: ConnectionNeed): GatewayError {
  const where = connection.url === undefined ? {} : { connectUrl: connection.url };
  return new GatewayError('CONNECTION_REQUIRED', neededAccount(connection), { delivered: 'no', ...where });
}

/** The sentence that says which account is missing, which user connects it, and by which command. */
function neededAccount({ template, instanceId, who, why, url }: ConnectionNeed): string {
  const command = `stagedoor connection add ${template} ${instanceId}`;
  const [whose, how] =
    who === 'shared'
      ? [
          'The shared account',
          url === undefined ? `an admin connects it with "${command}"` : `connect it at ${url}`,
        ]
      : ['Your account', 'connect it'];
  return `${whose} at the server of "${template}" ${WHY_NOT_CONNECTED[why](how)}.`;
}

const WHY_NOT_CONNECTED: Readonly<Record<ConnectionNeed['why'], (how: string) => string>> = {
  none: (how) => `is not connected: ${how} first`,
  ended: (how) => `is no longer connected: ${how} again`,
  scopes: (how) => `may not do this yet: ${how} again to allow more`,
};

/** The gateway stops, and the grace time of the call is over. Default: it may have been carried out. */
export function callCutOff(delivered: Delivered = 'unknown'): GatewayError {
  return backendUnavailable('the gateway is shutting down', { delivered });
}

/** The reason of calls that fail, or are not sent, because incomplete answers reached their memory bound. */
export const ANSWERS_HOLD_TOO_MUCH = 'its incomplete answers reached their memory limit';

/** The reason of a handshake that fails because what the gateway keeps of those with the instance reached its memory limit. */
export const HANDSHAKES_HOLD_TOO_MUCH = 'its answers to handshakes reached their memory limit';

/** The caller cancelled the opening of an instance or of a conversation. */
export function openingCancelled(cause?: unknown): GatewayError {
  return backendUnavailable('its start was cancelled', { delivered: 'no', cause });
}

/** An opening waited too long for a slot (FairSlots), or was aborted. */
export function openingRefused(why: 'late' | 'aborted', cause?: unknown): GatewayError {
  return why === 'aborted'
    ? openingCancelled(cause)
    : backendUnavailable('too many conversations with it were being opened', { delivered: 'no' });
}

export function notConnected(): GatewayError {
  return backendUnavailable('it is not connected', { delivered: 'no' });
}

/** The request waited for a connection, and may not be sent any more: see ExchangeRequest.mayBeSent. */
export function stoodStill(): GatewayError {
  return backendUnavailable('this node stood still while it waited for a connection', { delivered: 'no' });
}

export function backendTimeout(afterMs: number, delivered: Delivered = 'unknown'): GatewayError {
  // A measured time is a few ms over the limit.
  const seconds = (afterMs < 1_000 ? afterMs : Math.round(afterMs / 100) * 100) / 1000;
  return new GatewayError('BACKEND_TIMEOUT', `The backend did not answer within ${seconds} s.`, {
    ...(delivered === 'no' ? retryAfter(1) : { delivered }),
    health: 'suspicious',
    reason: `it did not answer within ${seconds} s`,
  });
}
