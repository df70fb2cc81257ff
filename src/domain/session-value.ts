// What the session of a legacy client is, as one plain value: JSON only, with a version of its own. The machine of the session holds
// it (actors/sessions/client-session.machine.ts), a parked session consists of it, and it can be written at any time and
// read again by another process. Source: ADR 138.
//
// The id of the session is a credential and not part of the value; its client sends it with the next request. The profile and the
// URIs belong to the client: the text is encrypted where it is stored.

import Type, { type Static } from 'typebox';
import type { JsonObject } from './json.ts';
import type { Peer } from './mcp.ts';
import { compileShape } from './validation.ts';

/** Version of the fields below. A change that an earlier release cannot read increases it. */
export const SESSION_VERSION = 1;
/** Most bytes of a written session. */
export const MAX_SESSION_BYTES = 16 * 1024;

const AnyObject = Type.Unsafe<JsonObject>(Type.Record(Type.String(), Type.Unknown()));
const Text = Type.String();

const SessionValueSchema = Type.Object(
  {
    version: Type.Literal(SESSION_VERSION),
    template: Text,
    /** Id of the principal that opened it. */
    ownerId: Text,
    /** What the client declared. */
    profile: Type.Object(
      { protocolVersion: Text, capabilities: AnyObject, clientInfo: AnyObject },
      { additionalProperties: false },
    ),
    /** The backend of the first binding, which the client knows from the handshake; absent before it. */
    greeted: Type.Optional(
      Type.Object(
        {
          era: Type.Union([Type.Literal('legacy'), Type.Literal('modern'), Type.Literal('bare')]),
          protocolVersion: Text,
          serverInfo: Type.Object({ name: Text, version: Text }, { additionalProperties: false }),
          capabilities: AnyObject,
        },
        { additionalProperties: false },
      ),
    ),
    /** The instance it is or was bound to; absent before the first binding. `isShared`: in a conversation of several clients. */
    binding: Type.Optional(
      Type.Object(
        { instanceId: Text, serverId: Text, isShared: Type.Boolean() },
        { additionalProperties: false },
      ),
    ),
    /** Whether a call that is not safe to repeat has arrived at a backend: `unknown` while the first ones are under way. */
    unsafe: Type.Union([Type.Literal('no'), Type.Literal('unknown'), Type.Literal('yes')]),
    /** The level of the last `logging/setLevel`. */
    logLevel: Type.Optional(Text),
    /** The resources that the client has subscribed to. */
    uris: Type.Array(Text),
    /** Why the session is over, as a clause; absent while it is not. */
    endReason: Type.Optional(Text),
  },
  { additionalProperties: false },
);

/** Read-only, but for objects with any names. */
type Frozen<T> = T extends readonly string[]
  ? readonly string[]
  : T extends object
    ? string extends keyof T
      ? T
      : { readonly [K in keyof T]: Frozen<T[K]> }
    : T;
export type SessionValue = Frozen<Static<typeof SessionValueSchema>>;

/** `version`: another release wrote it. `size`: more than MAX_SESSION_BYTES. `damage`: it is not a written session. */
export type SessionValueProblem = 'version' | 'size' | 'damage';

/** A session that cannot be written or read. The message repeats nothing of the value. */
export class SessionValueError extends Error {
  readonly problem: SessionValueProblem;

  constructor(problem: SessionValueProblem, message: string) {
    super(message);
    this.problem = problem;
  }
}

const SHAPE = compileShape(SessionValueSchema, 'body');

/** The value as JSON text. SessionValueError `size`. */
export function writeSession(value: SessionValue): string {
  const text = JSON.stringify(value);
  checkSize(text);
  return text;
}

/** The value that `writeSession` wrote. SessionValueError. */
export function readSession(text: string): SessionValue {
  checkSize(text);
  const value = parsed(text);
  const version = Object(value).version;
  if (Number.isSafeInteger(version) && version !== SESSION_VERSION) {
    const known = `this release reads version ${SESSION_VERSION}`;
    throw new SessionValueError('version', `the session is stored in version ${version}; ${known}`);
  }
  if (SHAPE.accepts(value)) return value;
  const [where] = SHAPE.issues(value);
  const field = where?.loc.slice(1).join('.') || 'the value';
  throw new SessionValueError('damage', `the stored session is damaged: ${field} is not as it was written`);
}

/** The part of a backend's handshake that the value keeps. */
export function greetedOf({
  era,
  protocolVersion,
  serverInfo,
  capabilities,
}: Peer): NonNullable<SessionValue['greeted']> {
  const { name, version } = serverInfo;
  return { era, protocolVersion, serverInfo: { name, version }, capabilities };
}

function checkSize(text: string): void {
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_SESSION_BYTES) return;
  throw new SessionValueError(
    'size',
    `the session takes ${bytes} bytes; at most ${MAX_SESSION_BYTES} are stored`,
  );
}

/** The error of `JSON.parse` would repeat a part of the text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SessionValueError('damage', 'the stored session is damaged: it is not JSON');
  }
}
