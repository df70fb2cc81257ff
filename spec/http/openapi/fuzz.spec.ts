// Two thousand requests that violate the API description, generated from it: wrong types, missing and further fields,
// invalid text, JSON and names. With any credentials, the gateway answers each with a documented error and keeps serving.
// FUZZ_SEED repeats a run, FUZZ_REQUESTS makes it longer.

import { connect } from 'node:net';
import * as assert from 'uvu/assert';
import { openApiDocument, tagOf } from '../../../src/http/openapi/openapi-document.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { answerCheck, type SeenAnswer } from '../../helpers/api/answer-check.ts';
import { readAll } from '../../helpers/clients/raw-http.ts';
import { Dice } from '../../helpers/dice.ts';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { type Malformed, malformed, targetsOf } from './malformed.ts';

const test = suite('requests that violate the API description', { timeoutMs: 60_000 });
const app = appFor(test, () => startWithAccounts({ maxBodyBytes: 64 * 1024 }));
test.before(() => app.serve('everything', 'everything-1'));

const { FUZZ_SEED, FUZZ_REQUESTS = '2000' } = process.env;
const seed = Number(FUZZ_SEED ?? Date.now() % 2 ** 31);
const document = JSON.parse(JSON.stringify(openApiDocument(ROUTES)));
const check = answerCheck(document);
// The MCP endpoints answer with errors of JSON-RPC.
const targets = targetsOf(document).filter(
  ({ path }) => tagOf(path.replaceAll(/\{(\w+)\}/g, ':$1')) !== 'MCP',
);

type Headers = readonly (readonly [name: string, value: string])[];

/** Headers with invalid credentials, each sent alone. */
const BAD_CREDENTIALS: readonly Headers[] = [
  ...[
    'Bearer',
    'Bearer x',
    'Bearer a.b.c',
    `Bearer ${'x'.repeat(4_000)}`,
    'Basic Og==',
    '',
    '\u00ff\u00fe',
  ].map((value) => [['Authorization', value]] as const),
  ...['', 'sd_x_y', `sd_0011223344556677_${'x'.repeat(43)}`, "' or 1=1 --", '\u0080'].map(
    (value) => [['X-API-Key', value]] as const,
  ),
];

/** 503 codes of a gateway that has no backend for the request. */
const UNAVAILABLE = ['NO_HEALTHY_INSTANCE', 'BACKEND_UNAVAILABLE', 'BACKEND_TIMEOUT', 'DATABASE_UNAVAILABLE'];

/** Refusals that every run meets, which shows that the requests reach every check. */
const MET = [
  ...[
    '400 MALFORMED_JSON',
    '401 AUTHENTICATION_REQUIRED',
    '401 INVALID_CREDENTIALS',
    '404 TEMPLATE_NOT_FOUND',
  ],
  ...['413 PAYLOAD_TOO_LARGE', '415 UNSUPPORTED_MEDIA_TYPE', '422 VALIDATION_ERROR'],
];

test(`get a documented error (${FUZZ_REQUESTS} requests, seed ${seed})`, async () => {
  const dice = new Dice(seed);
  const admin = Object.entries(app.admin);
  const requests = Array.from({ length: Number(FUZZ_REQUESTS) }, (_, index) => ({
    request: malformed(targets[index % targets.length] ?? fail(), document.components, dice),
    credentials: dice.below(4) > 0 ? admin : dice.pick<Headers>([[], ...BAD_CREDENTIALS]),
  }));
  const problems: string[] = [];
  const met = new Set<string>();
  const worker = async (): Promise<void> => {
    for (let next = requests.pop(); next !== undefined; next = requests.pop()) {
      const answer = await send(app.port, next.request, next.credentials);
      const { code, issues } = judge(answer);
      met.add(`${answer.status} ${code}`);
      const { flaw, method, target } = next.request;
      if (issues.length > 0) {
        problems.push(
          `${method} ${target.slice(0, 100)} (${flaw}): ${answer.status} ${code}: ${issues.join('; ')}`,
        );
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  assert.equal(problems, []);
  const found = MET.filter((kind) => !met.has(kind));
  assert.equal(found, []);
  assert.is((await app.as(app.admin, 'GET', '/mcp/everything/tools/list')).status, 200);
});

test('are the same for the same seed', () => {
  const made = (): Malformed[] => {
    const dice = new Dice(7);
    return targets.map((target) => malformed(target, document.components, dice));
  };
  assert.equal(made(), made());
});

/** What is wrong with an answer to a malformed request. */
function judge(answer: SeenAnswer): { readonly code: string; readonly issues: readonly string[] } {
  const { status, body = Buffer.alloc(0) } = answer;
  const issues = check(answer);
  if (status < 400) return { code: 'none', issues: [...issues, 'no error'] };
  const { detail, error_code: code, request_id: id } = Object(JSON.parse(body.toString() || '{}'));
  if (detail === undefined || code === undefined || id === undefined) issues.push('no error body');
  if (status >= 500 && !(status === 503 && UNAVAILABLE.includes(code)))
    issues.push('an error of the gateway');
  return { code, issues };
}

/** One request on a connection of its own: no client library would write these. */
async function send(port: number, request: Malformed, credentials: Headers): Promise<SeenAnswer> {
  const { method, target, headers, body } = request;
  const fixed: Headers = [
    ['Host', 'localhost'],
    ['Connection', 'close'],
    ['Content-Length', String(body.byteLength)],
  ];
  const lines = [...fixed, ...credentials, ...headers].map(([name, value]) => `${name}: ${value}\r\n`);
  const socket = connect(port, '127.0.0.1');
  socket.write(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1');
  socket.write(body);
  const [head = '', ...rest] = (await readAll(socket)).split('\r\n\r\n');
  const [statusLine = '', ...fields] = head.split('\r\n');
  return {
    method,
    target,
    status: Number(statusLine.split(' ')[1]),
    headers: new Map(fields.map((field) => [nameOf(field), field.replace(/^[^:]*: */, '')])),
    body: Buffer.from(rest.join('\r\n\r\n'), 'latin1'),
  };
}

function nameOf(field: string): string {
  return field.slice(0, field.indexOf(':')).toLowerCase();
}

function fail(): never {
  throw new Error('the document has no operations');
}

test.run();
