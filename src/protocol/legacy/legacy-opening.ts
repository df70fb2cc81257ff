// Opens the session of a legacy client that waits for it, and tells it. A session that nobody learns of is not left open.
// What was said and checked before is legacy-initialize.ts.

import type { ClientProfile } from '../../domain/client.ts';
import { JsonText } from '../../domain/json.ts';
import type { JsonRpcId } from '../../domain/jsonrpc.ts';
import type { McpReply } from '../endpoint-types.ts';
import { resultMessage } from '../envelope.ts';
import type { Backends, Owner } from '../ports.ts';
import { initializeResult } from './legacy-initialize.ts';

/** Who wants a session, and by which request. */
export interface Opener {
  readonly id: JsonRpcId;
  readonly owner: Owner;
  readonly profile: ClientProfile;
}

/** Opens and answers. Rejects before anything was answered; then, and when the client has left, nothing is left open. */
export async function openSession(opener: Opener, reply: McpReply, backends: Backends): Promise<void> {
  const leaving = new AbortController();
  reply.onGone(() => leaving.abort());
  const session = await backends.openSession(opener.owner, opener.profile, leaving.signal);
  try {
    const body = resultMessage(opener.id, JsonText.ofValue(initializeResult(session)));
    reply.opens(session.id);
    if (session.instanceId !== undefined) reply.from(session.instanceId);
    if (leaving.signal.aborted) await session.close();
    else reply.event(body, ['Mcp-Session-Id', session.id]);
  } catch (thrown) {
    await session.close(); // what its backend said of itself cannot be written
    throw thrown;
  }
}
