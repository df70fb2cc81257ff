// What one call over HTTP needs of the conversation it belongs to (http-conversation.ts).

import type { BackendMessage } from '../../domain/jsonrpc.ts';
import type { HttpCall } from './http-call.ts';
import type { HttpConnection } from './http-connection.ts';
import type { HttpSession } from './http-session.ts';
import type { KnownTools } from './missed-headers.ts';

export type Notification = Extract<BackendMessage, { kind: 'notification' }>;
export type Question = Extract<BackendMessage, { kind: 'request' }>;

/** The conversation a call belongs to. */
export interface CallHost extends KnownTools {
  readonly connection: HttpConnection;
  readonly session: HttpSession;
  /** Calls under way by request id, which is also their progress token. */
  readonly calls: Map<number, HttpCall>;
  /** Takes a notification that came on the stream of a call and need not be about it. */
  notified(message: Notification, call: HttpCall): void;
  /** Takes a request of the backend that came on the stream of a call. */
  asked(message: Question, call: HttpCall): void;
  /** Whether a session that the backend forgot is opened anew; else the conversation is over. */
  readonly reopens: boolean;
  /** Told that the backend forgot the session of a conversation that ends with it. */
  forgotten(): void;
  /** Told that the backend is in doubt, though the call goes on. */
  doubted(): void;
  /** Counts a message that is about nothing. */
  stray(): void;
}
