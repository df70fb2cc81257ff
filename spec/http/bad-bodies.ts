// The ways in which a JSON body can be invalid before its schema is checked, each with the expected answer.
// spec/http/app.spec.ts applies this table to every route with a body.

/** One bad body. */
export interface BadBody {
  /** A description that fits after "is answered …". */
  readonly what: string;
  readonly bytes: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** The status and the code of the error. */
  readonly outcome: string;
  /** For 422: location and type of the first issue. */
  readonly issue?: string;
  /** A call may have it: arguments belong to its caller. */
  readonly isValidInCall?: true;
}

/** The body limit in these specs, in bytes. */
export const SPEC_BODY_BYTES = 4_096;

export const BAD_BODIES: readonly BadBody[] = [
  broken('an object that is not closed', '{"name":"echo"'),
  broken('a byte order mark', '\ufeff{"name":"echo"}'),
  broken('bytes that are not UTF-8', Buffer.from([0x22, 0xc3, 0x28, 0x22])),
  unacceptable('no bytes at all', '', 'body missing'),
  unacceptable('an escaped NUL in a value', '{"name":"a\\u0000b"}', 'body.name string_unicode'),
  unacceptable('a bare NUL in a value', '{"name":"a\0b"}', 'body string_unicode'),
  unacceptable('a lone high surrogate', '{"name":"\\ud800"}', 'body.name string_unicode'),
  {
    ...unacceptable(
      'a lone low surrogate in a list',
      '{"name":"x","arguments":{"a":[1,"\\udc00"]}}',
      'body.arguments.a.1 string_unicode',
    ),
    isValidInCall: true,
  },
  unacceptable('lists nested too deeply', `${'['.repeat(500)}${']'.repeat(500)}`, 'body value_error'),
  unacceptable('objects nested too deeply', `${'{"a":'.repeat(129)}1${'}'.repeat(129)}`, 'body value_error'),
  {
    what: 'more bytes than allowed',
    bytes: Buffer.from(JSON.stringify({ name: 'x'.repeat(SPEC_BODY_BYTES) })),
    outcome: '413 PAYLOAD_TOO_LARGE',
  },
  ...['text/plain', '', `application/json${' '.repeat(16_000)}x`].map((type) =>
    ofHeaders(`the media type "${type.slice(0, 60)}"`, { 'content-type': type }),
  ),
  ofHeaders('a compressed body', { 'content-encoding': 'gzip' }),
];

/** Unusual bodies that are valid. */
export const ODD_BODIES: readonly { readonly what: string; readonly json: string; readonly type?: string }[] =
  [
    { what: 'a proper surrogate pair in escapes', json: '{"name":"\\ud83d\\ude00"}' },
    { what: 'characters outside ASCII', json: '{"name":"Grüße 漢字 😀"}' },
    { what: 'an escaped backslash before a u', json: '{"name":"\\\\u0000"}' },
    { what: 'a key called __proto__', json: '{"name":"echo","arguments":{"__proto__":{"polluted":true}}}' },
    { what: 'the deepest nesting there may be', json: `${'['.repeat(128)}${']'.repeat(128)}` },
    {
      what: 'a media type in capitals with a charset',
      json: '{"name":"echo"}',
      type: 'Application/JSON; Charset="UTF-8"',
    },
  ];

function broken(what: string, json: string | Buffer): BadBody {
  return { what, bytes: Buffer.from(json), outcome: '400 MALFORMED_JSON' };
}

function unacceptable(what: string, json: string, issue: string): BadBody {
  return { what, bytes: Buffer.from(json), outcome: '422 VALIDATION_ERROR', issue };
}

function ofHeaders(what: string, headers: Readonly<Record<string, string>>): BadBody {
  return { what, bytes: Buffer.from('{"name":"echo"}'), headers, outcome: '415 UNSUPPORTED_MEDIA_TYPE' };
}
