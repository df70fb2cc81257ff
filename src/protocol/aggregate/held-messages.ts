// The messages of the sessions with templates that the session of a client with several templates consists of.

import { defer, filter, finalize, merge, type Observable, takeUntil } from 'rxjs';
import type { ServerMessage } from '../../domain/client.ts';
import type { McpSession } from '../ports.ts';

/** The messages of one session, until it is over or among those that were `left$`. It does not expire while they are subscribed to. */
export function heldWhileSubscribed(
  session: McpSession,
  left$: Observable<McpSession>,
): Observable<ServerMessage> {
  const { messages$, ended$ } = session;
  const over$ = merge(ended$, left$.pipe(filter((left) => left === session)));
  return defer(() => messages$.pipe(takeUntil(over$), finalize(session.hold())));
}
