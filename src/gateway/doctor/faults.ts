// TABLE of the faults of servers: the reaction of the gateway to each, and the change that the server needs.
// docs/reference/server-faults.md is made from it; `stagedoor doctor` finds those that have a code.

import type { ListField } from '../../domain/mcp/mcp.ts';

export interface Fault {
  /** The code; present for a fault that the doctor finds. */
  readonly code?: string;
  /** The reason why the doctor does not find the fault; only for faults without a code. */
  readonly unseen?: string;
  /** Completes "The server ...". */
  readonly fault: string;
  /** Completes "The gateway ...". */
  readonly gateway: string;
  /** The change that the author of the server can make. */
  readonly remedy: string;
}

const TABLE = {
  'Programs (stdio)': [
    {
      code: 'stdout-text',
      fault: 'writes a banner or log lines to standard output',
      gateway: 'skips text that is not JSON, also without a line end before a message',
      remedy: 'write logs to standard error',
    },
    {
      code: 'line-form',
      fault: 'starts its output with a byte order mark, or ends lines with CRLF',
      gateway: 'ignores both',
      remedy: 'write UTF-8 without a mark, and `\\n`',
    },
    {
      code: 'invalid-utf8',
      fault: 'sends invalid UTF-8 in a result',
      gateway: 'replaces the bytes by U+FFFD, as SDK clients do',
      remedy: 'encode as UTF-8',
    },
    {
      code: 'slow-start',
      fault: 'takes long to answer `initialize`',
      gateway:
        'requests wait; a program has 300 s ([ADR 113](../adr/0113-requests-wait-for-starting-instances.md))',
      remedy: 'answer `initialize` first, then load',
    },
    {
      unseen: 'only a call shows it',
      fault: 'ends after each call, with code 0',
      gateway:
        'starts it again; the next call waits ([ADR 113](../adr/0113-requests-wait-for-starting-instances.md))',
      remedy: 'serve further calls',
    },
    {
      code: 'ends-at-discover',
      fault: 'ends when it is asked `server/discover`',
      gateway: 'starts it again without that question, and remembers the command',
      remedy: 'answer unknown methods with -32601',
    },
    {
      code: 'ends-at-unknown',
      fault: 'ends at a method of the other era in a session',
      gateway: 'answers it with -32601 itself; the program never gets it',
      remedy: 'answer unknown methods with -32601',
    },
    {
      code: 'ends-at-cancelled',
      fault: 'ends at `notifications/cancelled`',
      gateway:
        'starts it again; programs of that command no longer get cancellations ([ADR 119](../adr/0119-fatal-messages.md))',
      remedy: 'ignore cancellations',
    },
  ],
  HTTP: [
    {
      code: 'refused',
      fault: 'refuses the gateway with 401, 403, 404 or 410',
      gateway:
        'asks again after waits that double to 10 min, or as `Retry-After` says; `restart` asks at once',
      remedy: 'nothing: correct credentials or address',
    },
    {
      code: 'content-type',
      fault: 'answers with JSON but another content type, or with 201 or 202 and a body',
      gateway: 'reads the answer',
      remedy: 'send `application/json`, 200',
    },
    {
      code: 'redirect',
      fault: 'redirects to another path of its origin with 307 or 308, such as `/mcp` to `/mcp/`',
      gateway: 'follows once per request, with the body',
      remedy: 'nothing: register the final address to save a request',
    },
    {
      code: 'compressed',
      fault: 'compresses answers unasked: `gzip`, `deflate`, `br`, `zstd`, up to three',
      gateway: 'decodes them; the error names others',
      remedy: 'send plain bodies unless `Accept-Encoding` names the encoding',
    },
    {
      code: 'not-json-rpc',
      fault: 'answers 200 with a text or other JSON, or cuts a compressed body short',
      gateway: 'the error shows its beginning without secrets, or names the encoding',
      remedy: 'answer with JSON-RPC',
    },
    {
      unseen: 'it is allowed',
      fault: 'finds the server of a session by a cookie',
      gateway: 'returns the cookies in that session, to that origin',
      remedy: 'nothing',
    },
    {
      code: 'array-answer',
      fault: 'puts its answer into an array, as a body, an event or a line',
      gateway: 'reads the messages in it',
      remedy: 'send one message',
    },
    {
      code: 'initialized-answer',
      fault: 'answers `notifications/initialized` with an error, a body or another status',
      gateway: 'ignores the answer',
      remedy: 'answer 202 without a body',
    },
    {
      code: 'discover-answer',
      fault: 'answers `server/discover` with any status, HTML or foreign JSON',
      gateway: 'goes on with `initialize`',
      remedy: 'answer unknown methods with -32601',
    },
    {
      code: 'refuses-with-text',
      fault: 'refuses a call with a status and text',
      gateway: 'the caller gets both, without secrets ([ADR 107](../adr/0107-refusals-of-servers.md))',
      remedy: 'answer with a JSON-RPC error',
    },
    {
      code: 'refused-silently',
      fault: 'answers 401 or 403',
      gateway: "names them as the gateway's credentials for the server, never as those of the caller",
      remedy: 'say in the body what is missing',
    },
    {
      code: 'redirect-elsewhere',
      fault: 'redirects elsewhere, or answers 405',
      gateway: 'the error says where the redirect leads, or which methods the address takes',
      remedy: 'publish the final address',
    },
    {
      code: 'endless-refusal',
      fault: 'refuses with a body that is endless, or never ends',
      gateway: 'reads 256 KiB, or waits 2 s, and uses the beginning',
      remedy: 'end the answer',
    },
    {
      code: 'open-stream',
      fault: 'keeps the event stream of a POST open after its answer',
      gateway: 'closes it 2 s after the answer',
      remedy: 'end the stream after the answer',
    },
    {
      code: 'event-text',
      fault: 'sends event streams with `[DONE]`, comments, CR or CRLF, one byte at a time',
      gateway: 'reads them',
      remedy: 'nothing: most of it is allowed',
    },
  ],
  Messages: [
    {
      unseen: 'only a failing call shows it',
      fault: 'repeats its own credentials in an error (programs)',
      gateway: 'shows `***` for variables such as `API_KEY`, and for passwords in URLs',
      remedy: 'leave them out',
    },
    {
      unseen: 'only a failing call shows it',
      fault: 'answers with a result that is not an object, such as `null`',
      gateway: 'the caller gets an error that says what it is',
      remedy: 'answer with `{}` if there is nothing to say',
    },
    {
      code: 'null-member',
      fault: 'sends `"error": null` beside a result, or `"result": null` beside an error',
      gateway: 'uses the member that is not null',
      remedy: 'send one of the two',
    },
    {
      code: 'id-as-text',
      fault: 'sends an id or a progress token back as a text: `"7"` for 7',
      gateway: 'takes the text for the number',
      remedy: 'send it back as it came',
    },
    {
      code: 'id-null',
      fault: 'answers an error with `"id": null`',
      gateway: 'fails the one call in flight with it; with several, they end at their timeout',
      remedy: 'repeat the id of the request',
    },
    {
      code: 'large-integer',
      fault: 'writes integers over 2^53',
      gateway: 'passes them on exactly; JavaScript clients read others',
      remedy: 'write such ids as text',
    },
    {
      code: 'answers-twice',
      fault: 'answers twice, or sends progress after its answer',
      gateway: 'drops what comes late; no other caller gets it',
      remedy: 'answer once',
    },
    {
      code: 'wrong-id',
      fault: 'answers with an id that was not asked for, or without one',
      gateway: 'drops the answer; the caller waits until its timeout',
      remedy: 'repeat the id of the request',
    },
  ],
  Lists: [
    {
      code: 'optional-field',
      fault: 'sends null, or a wrong type, in an optional field of an item',
      gateway: '`/mcp` leaves the field out; other paths pass it on, and clients may reject the list',
      remedy: 'omit such fields',
    },
    {
      code: 'input-schema',
      fault: 'lists a tool without a usable input schema, or with odd `properties` or `required` in it',
      gateway: '`/mcp` repairs the root of the schema',
      remedy: 'send an object schema',
    },
    {
      code: 'output-schema',
      fault: 'lists an output schema that is not for objects, or does not compile (`$ref`, `pattern`)',
      gateway: '`/mcp` leaves the output schema out',
      remedy: 'check the schema with a validator of draft 7',
    },
    {
      code: 'no-name',
      fault: 'lists an item without a name or URI, or with one that is not text',
      gateway: '`/mcp` withholds that item alone; `stagedoor doctor` and the event `tool.withheld` name it',
      remedy: 'name every item',
    },
    {
      code: 'unsafe-name',
      fault: 'names tools with dots, spaces, other letters, or over 64 characters',
      gateway: '`/mcp` lists them under a safe name; `title` or `_meta` has their own',
      remedy: 'use letters, digits, `_` and `-`',
    },
    {
      code: 'odd-cursor',
      fault: 'ends a list with `nextCursor: ""`, `null` or a number (before 2026-07-28)',
      gateway: 'ends the list',
      remedy: 'leave `nextCursor` out on the last page',
    },
    {
      code: 'cursor-repeats',
      fault: 'returns the same cursor again, or the same page under new cursors',
      gateway: 'ends the list with what was read (`warning`, event `list.cut`)',
      remedy: 'leave `nextCursor` out on the last page',
    },
    {
      code: 'slow-list',
      fault: 'needs seconds for its first list, or is down',
      gateway: '`/mcp` waits up to 10 s, then shows its last list or names it in `_meta`',
      remedy: 'answer `tools/list` from memory',
    },
    {
      unseen: 'it is allowed',
      fault: 'announces no `prompts` or `resources`, or answers -32601 to their lists',
      gateway: 'REST and `/mcp` show an empty list',
      remedy: 'nothing',
    },
    {
      code: 'root-union',
      fault: 'lists a tool whose input schema has `anyOf`, `oneOf` or `allOf` at its root',
      gateway: 'passes it on; some clients refuse the tool, or all tools',
      remedy: 'put all fields into `properties`',
    },
    {
      code: 'large-tool',
      fault: 'lists a tool whose definition is larger than 128 KiB',
      gateway: '`/mcp` withholds that tool alone',
      remedy: 'shorten schema and description: they are a part of every request to a model',
    },
    {
      code: 'dangling-ref',
      fault: 'lists a tool whose input schema has a local `$ref` to a part that is not there',
      gateway: '`/mcp` withholds that tool alone',
      remedy: 'put the part into `$defs` of the same schema',
    },
    {
      code: 'duplicate-name',
      fault: 'lists two items with one name or URI',
      gateway: '`/mcp` shows the first one',
      remedy: 'give each item a name of its own',
    },
    {
      code: 'list-fails',
      fault: 'answers a list with an error other than -32601, or not in time',
      gateway: '`/mcp` shows the last one, or none',
      remedy: 'answer from memory; -32601 where there is none',
    },
  ],
  'Sessions and eras': [
    {
      code: 'discover-silent',
      fault: 'does not answer `server/discover`',
      gateway: 'uses `initialize` after a few seconds, once per start',
      remedy: 'answer unknown methods with -32601',
    },
    {
      code: 'era-announced',
      fault: 'answers `server/discover`, and then no request of that era',
      gateway: 'tries `initialize` after 5 s, once; set `era` to `legacy` to skip the wait',
      remedy: 'announce only the era that works',
    },
    {
      code: 'refuses-revision',
      fault: 'refuses `initialize` for its revision',
      gateway:
        'offers those that the refusal names, else older ones; after a bare "Invalid params" the next one',
      remedy: 'answer with a revision of its own',
    },
    {
      code: 'eras-differ',
      fault: 'answers wrongly in one of its two eras',
      gateway: 'nothing by itself: set `era` (`--era`, `instance set --era`) to the other one',
      remedy: 'announce only the era that works',
    },
    {
      code: 'modern-fields',
      fault:
        'speaks 2026-07-28 and leaves out `resultType`, `ttlMs` or `cacheScope`, or sends them in a wrong form',
      gateway: 'adds each of them: `complete`, 0, `private`',
      remedy: 'send all three',
    },
    {
      unseen: 'it is allowed',
      fault: 'lists some tools only for clients with an extension, such as MCP Apps',
      gateway:
        'with `session: auto`, clients with equal extensions share a process that was opened with them',
      remedy: 'nothing',
    },
    {
      code: 'session-status',
      fault: 'answers 400, 401, 403, 410 or 429 for an unknown session',
      gateway: 'pings, and opens a new session ([ADR 108](../adr/0108-sessions-that-servers-forget.md))',
      remedy: 'answer 404',
    },
    {
      unseen: 'it is allowed',
      fault: 'sends no `Mcp-Session-Id`',
      gateway: 'uses it without a session',
      remedy: 'nothing: sessions are optional',
    },
    {
      code: 'no-era',
      fault: 'opens in no era: does not start or answer, or refuses `server/discover` and `initialize`',
      gateway: 'opens it again later; calls get the reason',
      remedy: 'start it; answer `initialize`',
    },
  ],
} as const satisfies Readonly<Record<string, readonly Fault[]>>;

/** The faults that the doctor finds. */
export type FaultCode = Extract<
  (typeof TABLE)[keyof typeof TABLE][number],
  { readonly code: string }
>['code'];

/** One fault. `message`: a sentence about this server, without values that it sent but names of items. */
export interface Finding {
  readonly code: FaultCode;
  readonly list?: ListField;
  readonly name?: string;
  readonly message: string;
}

/** All faults, by subject. */
export const FAULTS: Readonly<Record<string, readonly Fault[]>> = TABLE;

/** The change that the author of the server can make against the fault with this code. */
export function remedyOf(code: FaultCode): string {
  const all = Object.values(FAULTS).flat();
  return all.find((fault) => fault.code === code)?.remedy ?? '';
}
