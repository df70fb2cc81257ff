// Every way in which a JSON body can be bad before anybody looks at its meaning, with the answer it gets. Every
// route with a body, with either reader, is held to this table: spec/http/app.spec.ts.

/** One bad body. */
export interface BadBody {
  /** A sentence: `is answered …` fits before it. */
  readonly what: string;
  readonly bytes: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly code: string;
  /** For 422: location and type of the first issue. */
  readonly issue?: { readonly loc: readonly (string | number)[]; readonly type: string };
}

/** The limit that specs set, in bytes. */
export const SPEC_BODY_BYTES = 4_096;

const text = (what: string): Buffer => Buffer.from(what);
const unicode = (...loc: (string | number)[]) => ({ loc: ['body', ...loc], type: 'string_unicode' });

export const BAD_BODIES: readonly BadBody[] = [
  broken('an object that is not closed', '{"name":"echo"'),
  broken('a text without quotes', 'echo'),
  broken('two values', '{} {}'),
  broken('single quotes', "{'name':'echo'}"),
  broken('a trailing comma', '{"name":"echo",}'),
  broken('NaN', '{"name":NaN}'),
  broken('a byte order mark', '\ufeff{"name":"echo"}'),
  { ...broken('bytes that are not UTF-8', ''), bytes: Buffer.from([0x22, 0xc3, 0x28, 0x22]) },
  {
    ...broken('a surrogate encoded as if it were a character', ''),
    bytes: Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
  },
  { ...broken('UTF-16', ''), bytes: Buffer.from('\ufeff{}', 'utf16le') },
  {
    what: 'no bytes at all',
    bytes: text(''),
    status: 422,
    code: 'VALIDATION_ERROR',
    issue: { loc: ['body'], type: 'missing' },
  },
  unacceptable('an escaped NUL in a value', '{"name":"a\\u0000b"}', unicode('name')),
  unacceptable(
    'an escaped NUL in a key',
    '{"name":"echo","arguments":{"a\\u0000b":1}}',
    unicode('arguments'),
  ),
  unacceptable('a bare NUL in a value', '{"name":"a\0b"}', unicode()),
  unacceptable('a lone high surrogate', '{"name":"\\ud800"}', unicode('name')),
  unacceptable(
    'a lone low surrogate in a list',
    '{"name":"x","arguments":{"a":[1,"\\udc00"]}}',
    unicode('arguments', 'a', 1),
  ),
  unacceptable('surrogates in the wrong order', '{"name":"\\udc00\\ud800"}', unicode('name')),
  unacceptable('lists nested too deeply', `${'['.repeat(500)}${']'.repeat(500)}`, {
    loc: ['body'],
    type: 'value_error',
  }),
  unacceptable('objects nested too deeply', `${'{"a":'.repeat(129)}1${'}'.repeat(129)}`, {
    loc: ['body'],
    type: 'value_error',
  }),
  {
    what: 'more bytes than allowed',
    bytes: text(JSON.stringify({ name: 'x'.repeat(SPEC_BODY_BYTES) })),
    status: 413,
    code: 'PAYLOAD_TOO_LARGE',
  },
  ofType('text/plain'),
  ofType('application/json; charset=utf-16'),
  ofType('application/json; charset=utf-8; other=1'),
  ofType('application/json-patch+json'),
  ofType('application/x-www-form-urlencoded'),
  ofType('multipart/form-data; boundary=x'),
  ofType(''),
  ofType(`application/json${' '.repeat(16_000)}x`),
  {
    what: 'a compressed body',
    bytes: text('{"name":"echo"}'),
    headers: { 'content-encoding': 'gzip' },
    status: 415,
    code: 'UNSUPPORTED_MEDIA_TYPE',
  },
];

/** Bodies that look odd and are fine. */
export const ODD_BODIES: readonly { readonly what: string; readonly json: string; readonly type?: string }[] =
  [
    { what: 'a proper surrogate pair in escapes', json: '{"name":"\\ud83d\\ude00"}' },
    { what: 'characters outside ASCII', json: '{"name":"Grüße 漢字 😀"}' },
    { what: 'an escaped backslash before a u', json: '{"name":"\\\\u0000"}' },
    { what: 'white space around it', json: ' \r\n\t{"name":"echo"}\n' },
    { what: 'a key called __proto__', json: '{"name":"echo","arguments":{"__proto__":{"polluted":true}}}' },
    { what: 'the deepest nesting there may be', json: `${'['.repeat(128)}${']'.repeat(128)}` },
    {
      what: 'a media type in capitals with a charset',
      json: '{"name":"echo"}',
      type: 'Application/JSON; Charset="UTF-8"',
    },
  ];

function broken(what: string, json: string): BadBody {
  return { what, bytes: text(json), status: 400, code: 'MALFORMED_JSON' };
}

function unacceptable(what: string, json: string, issue: NonNullable<BadBody['issue']>): BadBody {
  return { what, bytes: text(json), status: 422, code: 'VALIDATION_ERROR', issue };
}

function ofType(type: string): BadBody {
  return {
    what: `the media type "${type.slice(0, 60)}"`,
    bytes: text('{"name":"echo"}'),
    headers: { 'content-type': type },
    status: 415,
    code: 'UNSUPPORTED_MEDIA_TYPE',
  };
}
