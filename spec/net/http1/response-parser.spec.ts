// The framing of HTTP answers: what is an answer, where it ends, and what is an error, however the bytes are cut.

import { maxHeaderSize } from 'node:http';
import * as assert from 'uvu/assert';
import type { HttpHeaders } from '../../../src/domain/text.ts';
import { InvalidResponse, ResponseParser } from '../../../src/net/http1/response-parser.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('response parser');

interface Read {
  status: number;
  headers: HttpHeaders;
  body: string;
  /** `closed`: it ends with the connection. */
  ends: 'over' | 'closed' | 'open';
  isReusable: boolean;
}

/** Reads pieces of answers as one connection would. */
function read(pieces: readonly string[]): Read | string {
  const parser = new ResponseParser();
  const answer: Read = { status: 0, headers: {}, body: '', ends: 'open', isReusable: false };
  const sink = {
    onResponseStart(status: number, headers: HttpHeaders) {
      assert.is(answer.status, 0, 'an answer begins once');
      Object.assign(answer, { status, headers: { ...headers } });
    },
    onResponseData(chunk: Buffer) {
      assert.ok(chunk.length > 0);
      answer.body += chunk.toString('latin1');
    },
  };
  try {
    for (const piece of pieces) if (parser.push(Buffer.from(piece, 'latin1'), sink)) answer.ends = 'over';
    if (answer.ends !== 'over') {
      parser.end();
      answer.ends = 'closed';
    }
  } catch (thrown) {
    if (thrown instanceof InvalidResponse) return thrown.message;
    if ((thrown as { code?: unknown }).code !== 'ECONNRESET') throw thrown;
  }
  return { ...answer, isReusable: parser.isReusable };
}

/** The same, however the bytes are cut. */
function readInAllCuts(text: string): Read | string {
  const whole = read([text]);
  assert.equal(read([...text]), whole, 'byte by byte');
  for (let at = 1; at < Math.min(text.length, 400); at += 1)
    assert.equal(read([text.slice(0, at), text.slice(at)]), whole, `cut after ${at} bytes`);
  return whole;
}

const OK = 'HTTP/1.1 200 OK\r\n';

for (const [name, text, expected] of [
  ['a length', `${OK}Content-Length: 5\r\n\r\nhello`, { body: 'hello', isReusable: true }],
  ['a length of zero', `${OK}Content-Length: 0\r\n\r\n`, { isReusable: true }],
  ['no reason', 'HTTP/1.1 200\r\ncontent-length:1\r\n\r\nx', { body: 'x', isReusable: true }],
  [
    'chunks',
    `${OK}Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n00A\r\n, world!!!\r\n0\r\n\r\n`,
    { body: 'hello, world!!!', isReusable: true },
  ],
  [
    'extensions and trailers',
    `${OK}transfer-encoding: chunked\r\n\r\n2;a=b;c="d"\r\nhi\r\n0;last\r\nX-Sum: 1\r\n\r\n`,
    { body: 'hi', isReusable: true },
  ],
  ['until the close', `${OK}\r\nall of it`, { body: 'all of it', ends: 'closed' }],
  ['a last answer', `${OK}content-length: 2\r\nConnection: Keep-Alive, Close\r\n\r\nhi`, { body: 'hi' }],
  ['HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi', { body: 'hi' }],
  [
    'HTTP/1.0 that is kept',
    'HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nhi',
    { body: 'hi', isReusable: true },
  ],
  [
    'interim answers',
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${OK}content-length: 2\r\n\r\nhi`,
    { body: 'hi', isReusable: true },
  ],
  [
    '204 with a length',
    'HTTP/1.1 204 No Content\r\ncontent-length: 9\r\n\r\n',
    { status: 204, isReusable: true },
  ],
  [
    '304 with chunks',
    'HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n',
    { status: 304, isReusable: true },
  ],
  [
    'another status',
    'HTTP/1.1 599 \r\ncontent-length: 1\r\n\r\nx',
    { status: 599, body: 'x', isReusable: true },
  ],
  [
    'bytes after the answer',
    `${OK}content-length: 2\r\n\r\nhi${OK}content-length: 6\r\n\r\nforged`,
    { body: 'hi' },
  ],
  ['bytes after the last chunk', `${OK}transfer-encoding: chunked\r\n\r\n0\r\n\r\n\r\n`, {}],
  ['a body after 204', 'HTTP/1.1 204 No Content\r\n\r\nhi', { status: 204 }],
  ['a body that is cut', `${OK}content-length: 5\r\n\r\nhell`, { body: 'hell', ends: 'open' }],
  [
    'chunks that are cut',
    `${OK}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n`,
    { body: 'hello', ends: 'open' },
  ],
  ['a head that is cut', `${OK}content-len`, { status: 0, ends: 'open' }],
  ['nothing', '', { status: 0, ends: 'open' }],
] as const) {
  test(`reads ${name}`, () => {
    const seen = readInAllCuts(text);
    if (typeof seen === 'string') throw new Error(seen);
    const { headers: _, ...rest } = seen;
    assert.equal(rest, { status: 200, body: '', ends: 'over', isReusable: false, ...expected });
  });
}

test('headers have names in lower case, trimmed values, and all values of a repeated name', () => {
  const seen = readInAllCuts(
    `${OK}Content-Length: 0\r\nSet-Cookie: a=1\r\nX: \t caf\xe9 \t\r\nset-cookie: b=2\r\nSET-COOKIE: c=3\r\n__proto__: x\r\nEmpty:\r\n\r\n`,
  );
  if (typeof seen === 'string') throw new Error(seen);
  assert.equal(Object.entries(seen.headers), [
    ['content-length', '0'],
    ['set-cookie', ['a=1', 'b=2', 'c=3']],
    ['x', 'caf\xe9'],
    ['__proto__', 'x'],
    ['empty', ''],
  ]);
});

const LENGTH = 'its content-length is invalid';
const CODING = 'its transfer-encoding is not chunked';
const HEADER = 'a header is invalid';
const NO_HTTP = 'it is not HTTP/1.1';
const NO_STATUS = 'its first line is not a status of HTTP/1.1';
const SIZE = 'the size of a chunk is invalid';
const chunked = `${OK}transfer-encoding: chunked\r\n\r\n`;

for (const [name, text, reason] of [
  ['two different lengths', `${OK}content-length: 5\r\ncontent-length: 6\r\n\r\nhello`, LENGTH],
  ['the same length twice', `${OK}content-length: 5\r\ncontent-length: 5\r\n\r\nhello`, LENGTH],
  ['a list of lengths', `${OK}content-length: 5, 5\r\n\r\nhello`, LENGTH],
  ['a negative length', `${OK}content-length: -5\r\n\r\nhello`, LENGTH],
  ['a signed length', `${OK}content-length: +5\r\n\r\nhello`, LENGTH],
  ['a hexadecimal length', `${OK}content-length: 0x5\r\n\r\nhello`, LENGTH],
  ['an empty length', `${OK}content-length:\r\n\r\nhello`, LENGTH],
  ['a huge length', `${OK}content-length: 18446744073709551621\r\n\r\nhello`, LENGTH],
  ['an invalid length of 204', 'HTTP/1.1 204 No\r\ncontent-length: x\r\n\r\n', LENGTH],
  [
    'a length and chunks',
    `${OK}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    'it has both a content-length and a transfer-encoding',
  ],
  ['another coding', `${OK}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, CODING],
  ['no chunks', `${OK}transfer-encoding: identity\r\n\r\nhello`, CODING],
  ['chunks twice', `${OK}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`, CODING],
  ['chunks with another character', `${OK}transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n`, undefined],
  ['chunks in HTTP/1.0', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n', CODING],
  ['a space before the colon', `${OK}content-length : 5\r\n\r\nhello`, HEADER],
  ['a folded header', `${OK}x: a\r\n b\r\ncontent-length: 0\r\n\r\n`, HEADER],
  ['a folded first header', `${OK} x: a\r\n\r\n`, HEADER],
  ['no colon', `${OK}content-length\r\n\r\n`, HEADER],
  ['no name', `${OK}: 5\r\n\r\n`, HEADER],
  ['NUL', `${OK}x: a\0b\r\n\r\n`, undefined],
  ['DEL', `${OK}x: a\x7fb\r\n\r\n`, undefined],
  ['a bare LF', `${OK}x: a\ncontent-length: 0\r\n\r\n`, undefined],
  ['only LF', 'HTTP/1.1 200 OK\ncontent-length: 0\n\n', NO_HTTP],
  ['a bare CR', `${OK}x: a\rcontent-length: 0\r\n\r\n`, HEADER],
  ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n', NO_HTTP],
  ['another version', 'HTTP/2.0 200 OK\r\n\r\n', undefined],
  ['a later version', 'HTTP/1.2 200 OK\r\n\r\n', NO_STATUS],
  ['an empty line before', `\r\n${OK}\r\n`, undefined],
  ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n', NO_STATUS],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n', NO_STATUS],
  ['a status of zero', 'HTTP/1.1 000 OK\r\n\r\n', NO_STATUS],
  ['two spaces', 'HTTP/1.1  200 OK\r\n\r\n', NO_STATUS],
  [
    'a change of protocols',
    'HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n',
    'it changes to another protocol, which was not asked for',
  ],
  ['endless interim answers', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(17), 'more than 16 interim answers'],
  ['too many headers', `${OK}${'a: b\r\n'.repeat(257)}\r\n`, 'it has more than 256 headers'],
  ['no size', `${chunked}\r\nhello`, SIZE],
  ['a size that is not a number', `${chunked}xyz\r\n`, SIZE],
  ['a negative size', `${chunked}-1\r\n`, SIZE],
  ['a size with a prefix', `${chunked}0x5\r\nhello\r\n`, SIZE],
  ['a size with spaces', `${chunked}5 \r\nhello\r\n`, SIZE],
  ['a huge size', `${chunked}10000000000000005\r\nhello\r\n`, SIZE],
  ['a size with NUL', `${chunked}5;\0\r\nhello\r\n`, SIZE],
  [
    'a size that ends with LF',
    `${chunked}5\nhello\r\n`,
    'a line of its chunked body does not end with CR LF',
  ],
  ['a chunk that is longer', `${chunked}4\r\nhello\r\n0\r\n\r\n`, 'a chunk is longer than its size'],
  ['an endless size line', `${chunked}5;${'a'.repeat(2_000)}`, 'a line of its chunked body is too long'],
  [
    'too many extensions',
    `${chunked}${`1;${'a'.repeat(1_000)}\r\nx\r\n`.repeat(20)}`,
    'its chunks have too many extensions',
  ],
  ['a folded trailer', `${chunked}0\r\na: b\r\n c\r\n\r\n`, 'a trailer is invalid'],
  ['a trailer with LF', `${chunked}0\r\na: b\n\r\n`, 'a line of its chunked body does not end with CR LF'],
] as const) {
  test(`refuses ${name}`, () => {
    const whole = read([text]);
    if (reason === undefined) assert.type(whole, 'string');
    else assert.is(whole, reason);
    // Cut, it may be refused before, and for another reason.
    for (let at = 1; at < Math.min(text.length, 400); at += 1)
      assert.type(read([text.slice(0, at), text.slice(at)]), 'string', `cut after ${at} bytes`);
    assert.type(read([...text]), 'string', 'byte by byte');
  });
}

test('the size of a head and of trailers is bounded, also when they never end', () => {
  const long = `x: ${'a'.repeat(1_000)}\r\n`.repeat(Math.ceil(maxHeaderSize / 1_000));
  for (const text of [
    `${OK}${long}`,
    `${OK}${long}\r\n`,
    `${OK}x: ${'a'.repeat(maxHeaderSize)}`,
    `${chunked}0\r\n${long}`,
  ])
    assert.type(read([text]), 'string');
  const pieces = Array.from({ length: maxHeaderSize + 10 }, () => 'a');
  assert.type(read([OK, 'x: ', ...pieces]), 'string');
});

test('small chunks that are read together are one piece, up to 16 KiB, in their place among the others', () => {
  const head = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
  const piecesOf = (...reads: string[]): string[] => {
    const pieces: string[] = [];
    const parser = new ResponseParser();
    const onResponseData = (piece: Buffer) => void pieces.push(piece.toString('latin1'));
    try {
      for (const text of reads)
        parser.push(Buffer.from(text, 'latin1'), { onResponseStart: () => {}, onResponseData });
    } catch (thrown) {
      pieces.push((thrown as Error).message);
    }
    return pieces;
  };
  const [large, end] = ['x'.repeat(2_000), '0\r\n\r\n'];
  assert.equal(piecesOf(head + ['a', 'bc', 'd'].map(chunk).join('') + end), ['abcd']);
  assert.equal(piecesOf(head + chunk('a'), chunk('b') + chunk('c') + end), ['a', 'bc']);
  assert.equal(piecesOf(head + ['a', large, 'b', 'c'].map(chunk).join('') + end), ['a', large, 'bc']);
  assert.equal(piecesOf(`${head}${chunk('a')}${chunk('b')}zz\r\n`), ['ab', 'the size of a chunk is invalid']);
  const letters = Array.from({ length: 10_000 }, (_, index) => String.fromCharCode(97 + (index % 26)));
  for (const size of [1, 3, 700]) {
    const texts = letters.map((letter) => letter.repeat(size)).slice(0, 60_000 / size);
    const pieces = piecesOf(head + texts.map(chunk).join('') + end);
    assert.is(pieces.join(''), texts.join(''));
    assert.ok(pieces.length <= 5 && pieces.every(({ length }) => length <= 16_384), String(pieces.length));
  }
});

test('the head of an answer is not taken for that of the next one', () => {
  const parser = new ResponseParser();
  const statuses: unknown[] = [];
  const sink = {
    onResponseStart: (status: number, { a }: HttpHeaders) => void statuses.push([status, a]),
    onResponseData: () => {},
  };
  for (const head of [
    '200 OK\r\na: 1',
    '200 OK\r\na: 1',
    '404 No\r\na: 1',
    '200 OK\r\na: 2',
    '200 OK\r\na: 1',
  ]) {
    parser.reset();
    assert.ok(parser.push(Buffer.from(`HTTP/1.1 ${head}\r\ncontent-length: 1\r\n\r\nx`), sink));
    assert.ok(parser.isReusable);
  }
  assert.equal(statuses, [
    [200, '1'],
    [200, '1'],
    [404, '1'],
    [200, '2'],
    [200, '1'],
  ]);
});

test.run();
