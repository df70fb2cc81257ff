// What the session of a legacy client is, as one plain value: JSON only, with a version of its own. Its session
// holds it: with one template the machine (actors/sessions/client-session.machine.ts), with several templates
// protocol/aggregate/sessions/aggregate-session.ts. It can be written at any time and read again by another process. Source:
// ADR 138, ADR 145.
//
// The id of the session is a credential and not part of the value; its client sends it with the next request. The profile and the
// URIs belong to the client: the text is encrypted where it is stored.

import Type, { type Static } from 'typebox';
import type { JsonObject } from '../json/json.ts';
import type { Handshake } from '../mcp/mcp.ts';
import { compileShape } from '../validation.ts';
import { type EndReason, SESSION_ENDS } from './session-ends.ts';

/** Version of the fields below. A change that an earlier release cannot read increases it. */
export const SESSION_VERSION = 1;
/** Most bytes of a written session. */
export const MAX_SESSION_BYTES = 16 * 1024;

const AnyObject = Type.Unsafe<JsonObject>(Type.Record(Type.String(), Type.Unknown()));
const Text = Type.String();

const CLOSED = { additionalProperties: false };

/** The fields of both kinds. */
const COMMON = {
  version: Type.Literal(SESSION_VERSION),
  /** Id of the principal that opened it. */
  ownerId: Text,
  /** What the client declared. */
  profile: Type.Object({ protocolVersion: Text, capabilities: AnyObject, clientInfo: AnyObject }, CLOSED),
  /** The server that the client knows from the handshake; absent before it. */
  greeted: Type.Optional(
    Type.Object(
      {
        era: Type.Union([Type.Literal('legacy'), Type.Literal('modern'), Type.Literal('bare')]),
        protocolVersion: Text,
        serverInfo: Type.Object({ name: Text, version: Text }, CLOSED),
        capabilities: AnyObject,
      },
      CLOSED,
    ),
  ),
  /** The level of the last `logging/setLevel`. */
  logLevel: Type.Optional(Text),
  /** Why the session is over; absent while it is not. */
  endReason: Type.Optional(Type.Unsafe<EndReason>(Type.Enum(Object.keys(SESSION_ENDS)))),
};

const WithTemplate = Type.Object(
  {
    ...COMMON,
    kind: Type.Literal('template'),
    template: Text,
    /** The instance it is or was bound to; absent before the first binding. `isShared`: in a conversation of several clients. */
    binding: Type.Optional(
      Type.Object({ instanceId: Text, serverId: Text, isShared: Type.Boolean() }, CLOSED),
    ),
    /** Whether a call that is not safe to repeat has arrived at a backend: `unknown` while the first ones are under way. */
    unsafe: Type.Union([Type.Literal('no'), Type.Literal('unknown'), Type.Literal('yes')]),
    /** The resources that the client has subscribed to. */
    uris: Type.Array(Text),
  },
  CLOSED,
);

/** The fields of a session with several templates. */
const SEVERAL = {
  ...COMMON,
  /** The templates that its owner may use; absent for all. */
  templates: Type.Optional(Type.Array(Text)),
  /** The resources that the client has subscribed to, by template, as the client named them. */
  uris: Type.Record(Text, Type.Array(Text)),
  /** By template, their URIs there, where they are others: see protocol/aggregate/composed-uris.ts. */
  composed: Type.Optional(Type.Record(Text, Type.Record(Text, Text))),
  /** The templates whose sessions asked for the mark: see UnsafeMark. */
  unsafeIn: Type.Optional(Type.Array(Text)),
};

const WithAll = Type.Object({ ...SEVERAL, kind: Type.Literal('all') }, CLOSED);
/** An earlier release reads it as damaged, and its client begins anew. */
const WithView = Type.Object({ ...SEVERAL, kind: Type.Literal('view'), view: Text }, CLOSED);

/** Read-only, but for objects with any names. */
type Frozen<T> = T extends readonly string[]
  ? readonly string[]
  : T extends object
    ? string extends keyof T
      ? T
      : { readonly [K in keyof T]: Frozen<T[K]> }
    : T;
/** The session of a client with one template. */
export type SessionValue = Frozen<Static<typeof WithTemplate>>;
/**
 * The session of a client with several templates: all of them, or those of a view. Its sessions with single
 * templates are not part of it.
 */
export type AggregateSessionValue = Frozen<Static<typeof WithAll>> | Frozen<Static<typeof WithView>>;
export type AnySessionValue = SessionValue | AggregateSessionValue;

/** Each life that claims a session has its next generation. */
export const FIRST_GENERATION = 1;

/**
 * In the row of a session: it made a call that is not safe to repeat, or any call where it may not move at all. It
 * is written before that call leaves.
 */
export interface UnsafeMark {
  /** Such a call has to wait for `mark`. */
  readonly isUnmarked: boolean;
  /** Resolves when it is written, after 250 ms at most; undefined when there is nothing to wait for. It stays. */
  mark(): Promise<void> | undefined;
}

/** A session that can have a row. */
export interface StorableSession {
  readonly id: string;
  /** Another object after each change. */
  readonly value: AnySessionValue;
  /** Another life has claimed the session. */
  takenOver(): void;
}

/** How a session is opened. */
export interface SessionOpening {
  /** A new id for the session. Default: the table chooses it. */
  readonly id?: string | undefined;
  /** When it aborts, the opening rejects, and no session is left open. */
  readonly signal?: AbortSignal | undefined;
  /**
   * True for a part of the session of a client with several templates: it begins anew at an instance where another
   * session would end.
   */
  readonly isPart?: boolean | undefined;
  /** The mark of the whole session, for a part of one that is stored. */
  readonly mark?: UnsafeMark | undefined;
  /** True for a part of a session that was recovered. */
  readonly isRecovered?: boolean | undefined;
}

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

const SHAPE = compileShape(Type.Union([WithTemplate, WithAll, WithView]), 'body');

/** The value as JSON text. SessionValueError `size`. */
export function writeSession(value: AnySessionValue): string {
  const text = JSON.stringify(value);
  checkSize(text);
  return text;
}

/** The value that `writeSession` wrote. SessionValueError. */
export function readSession(text: string): AnySessionValue {
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
}: Handshake): NonNullable<SessionValue['greeted']> {
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
