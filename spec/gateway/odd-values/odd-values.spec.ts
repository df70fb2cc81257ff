// Messages of servers and of clients, of both eras, with one odd node: null, an object as a text, numbers beyond 2^53, deep
// nesting, repeated keys. Whatever it is, no error escapes, each request is answered by a result or an error with a code, and the
// lists and calls of other templates are as before. ODD_SEED makes another run; ODD_RUNS, ODD_PROGRAMS and ODD_CLIENT_RUNS a
// longer one.

import * as assert from 'uvu/assert';
import { META } from '../../../src/domain/mcp/mcp.ts';
import { type Json, objectOr } from '../../fixtures/wire.ts';
import { LegacyClient, ModernClient, type Outcome } from '../../helpers/clients/mcp-client.ts';
import { MCP_TYPES, modern, openSession, rpc } from '../../helpers/clients/mcp-messages.ts';
import { type Message, Wire } from '../../helpers/clients/mcp-wire.ts';
import { Dice } from '../../helpers/dice.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { kindsOf, type SpokenEra, TOOLS } from './odd-messages.ts';
import { withOddNode } from './odd-node.ts';
import { startOddServer } from './odd-server.ts';

const { ODD_SEED = '7', ODD_RUNS = '10', ODD_PROGRAMS = '1', ODD_CLIENT_RUNS = '300' } = process.env;
const seed = Number(ODD_SEED);
const test = suite(`odd values, ODD_SEED=${seed}`, {
  timeoutMs: 60_000 + Number(ODD_RUNS) * 5_000 + Number(ODD_CLIENT_RUNS) * 100,
});
const app = appFor(test, () => startApp({ logLevel: 'error' }));
const settings = { loadBalancer: { timeout: 1 } };
const withinMs = 40_000;
const LANES = 2;

const escaped: string[] = [];
let current = '';
const note = (thrown: unknown): void => void escaped.push(`${current}: ${Object(thrown).stack ?? thrown}`);
test.before(async () => {
  process.on('uncaughtException', note).on('unhandledRejection', note);
  await app.serve('well', 'one');
  const lanes = Array.from({ length: LANES }, (_, lane) => ({ template: `odd-${lane}` }));
  await app.gateway.views.put({ id: 'desk', from: [{ template: 'well' }, ...lanes, { template: 'sane' }] });
  await app.gateway.views.put({
    id: 'found',
    from: [{ template: 'well' }, ...lanes, { template: 'sane' }],
    mode: 'search',
  });
});
test.after(() => {
  process.off('uncaughtException', note).off('unhandledRejection', note);
});

const replies = {
  'elicitation/create': () => ({ action: 'accept', content: { name: 'a' } }),
  'sampling/createMessage': () => ({ role: 'assistant', content: { type: 'text', text: 'x' }, model: 'm' }),
  'roots/list': () => ({ roots: [{ uri: 'file:///a', name: 'a' }] }),
  ping: () => ({}),
};
const capabilities = {
  ...{ elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } },
  extensions: { 'io.modelcontextprotocol/tasks': {} },
};

type Tell = (what: string) => void;
type Requests = readonly (readonly [method: string, params: Json])[];

/** Valid requests that reach everything a server offers; at `/mcp` and in views, `prefix` is in front of names. */
function requestsFor(era: SpokenEra, prefix = ''): Requests {
  const calls = TOOLS.map(
    (name) => ['tools/call', { name: prefix + name, arguments: { city: 'Ulm', n: 1 } }] as const,
  );
  const taskId = 'task-1';
  return [
    ...['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'].map(
      (m) => [m, {}] as const,
    ),
    ...calls,
    ['resources/read', { uri: 'x://a' }],
    ['prompts/get', { name: `${prefix}p`, arguments: { a: 'b' } }],
    [
      'completion/complete',
      {
        ref: { type: 'ref/prompt', name: `${prefix}p` },
        argument: { name: 'a', value: 'b' },
        context: { arguments: {} },
      },
    ],
    ['tasks/get', { taskId }],
    ['tasks/cancel', { taskId }],
    ...(era === 'legacy'
      ? ([
          ['tools/call', { name: `${prefix}begin`, arguments: { city: 'Ulm' }, task: { ttl: 60_000 } }],
          ['tasks/list', {}],
          ['tasks/result', { taskId }],
          ['resources/subscribe', { uri: 'x://a' }],
          ['resources/unsubscribe', { uri: 'x://a' }],
          ['logging/setLevel', { level: 'debug' }],
          ['ping', {}],
        ] as const)
      : ([['tasks/update', { taskId, inputResponses: {} }]] as const)),
  ];
}

test(`of servers (${ODD_RUNS}, ${ODD_PROGRAMS} of them programs, seed ${seed})`, async () => {
  const problems: string[] = [];
  const runs = Array.from({ length: Number(ODD_RUNS) }, (_, run) => run);
  await Promise.all(
    Array.from({ length: LANES }, async (_, lane) => {
      for (let run = runs.shift(); run !== undefined; run = runs.shift())
        problems.push(...(await serverRun(lane, run)));
    }),
  );
  assert.equal([problems, escaped, faults()], [[], [], []]);
});

/** What is wrong after a server with one kind of odd messages was used by clients of both eras. */
async function serverRun(lane: number, run: number): Promise<string[]> {
  const dice = new Dice(seed + run);
  const era = dice.pick<SpokenEra>(['legacy', 'modern']);
  const kind = dice.pick(kindsOf(era));
  const said: string[] = [];
  const own = seed + run;
  const isProgram = run < Number(ODD_PROGRAMS);
  const server = isProgram
    ? undefined
    : await startOddServer({ era, kind, seed: own }, (text) => said.push(text));
  const program = new URL('./odd-server.ts', import.meta.url).pathname;
  const instance = server
    ? { id: `r${run}`, endpoint: server.url }
    : { id: `r${run}`, command: process.execPath, args: [program, era, kind, String(own)] };
  const template = `odd-${lane}`;
  const problems: string[] = [];
  const tell = (what: string) =>
    problems.push(
      `run ${run} ${era} ${kind} ${isProgram}: ${what}\n   ${said
        .map((t) => t.slice(0, 300))
        .slice(0, 6)
        .join('\n   ')}`,
    );
  current = `run ${run} at ${template}`;
  const wire = new Wire(app.url);
  try {
    await app.gateway
      .register(template, instance, { ...settings, waitMs: isProgram ? 3_000 : 500 })
      .catch((thrown) => {
        if (Object(thrown).code === undefined) tell(`register: ${Object(thrown).stack}`);
      });
    await Promise.all([
      legacyUse(wire, `/mcp/${template}`, '', tell),
      modernUse(wire, `/mcp/${template}`, '', tell),
      run % 4 === 0
        ? legacyUse(wire, '/mcp', `${template}__`, tell)
        : modernUse(wire, '/mcp', `${template}__`, tell),
      dice.below(2) === 0 ? legacyUse(wire, '/mcp/desk', '', tell) : modernUse(wire, '/mcp/desk', '', tell),
    ]);
    await othersAreWell(tell);
    // Not over REST, whose description of items a list that is passed on does not keep.
    for (const field of ['tools', 'resources', 'prompts'] as const)
      await app.gateway.list(template, field).catch((thrown) => {
        if (Object(thrown).code === undefined) tell(`${field}: ${Object(thrown).stack}`);
      });
    await judgeRest('GET', '/registry/status', tell);
  } finally {
    await app.gateway.deregister(template, instance.id).catch((thrown) => tell(`deregister: ${thrown}`));
    wire.close();
    await server?.close();
  }
  return problems;
}

async function judgeRest(method: string, path: string, tell: Tell): Promise<void> {
  const { status, text, body } = await app.ask(method, path);
  if (status === 500 || (status >= 400 && typeof body.error_code !== 'string'))
    tell(`${path}: ${status} ${text.slice(0, 300)}`);
}

/** A client that declares everything, uses everything, and answers everything. */
async function legacyUse(wire: Wire, path: string, prefix: string, tell: Tell): Promise<void> {
  let client: LegacyClient;
  try {
    client = await LegacyClient.open(wire, path, { capabilities, replies, withinMs });
  } catch (thrown) {
    if (!/^Error: no session .*"(error_code|code)":/s.test(String(thrown))) tell(String(thrown));
    return;
  }
  const stream = await client.listen().catch((thrown) => void tell(`listen ${path}: ${thrown}`));
  await askAll(
    requestsFor('legacy', prefix),
    (method, params) => client.ask(method, params, META_OF),
    path,
    tell,
  );
  stream?.close();
  await client.close().catch((thrown) => tell(`close ${path}: ${thrown}`));
}

const META_OF = { meta: { progressToken: 7 } };

async function modernUse(wire: Wire, path: string, prefix: string, tell: Tell): Promise<void> {
  const client = new ModernClient(wire, path, { capabilities, replies, withinMs });
  const wanted = {
    ...{ toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true },
    resourceSubscriptions: ['x://a'],
  };
  const listening = await client.listen(wanted).catch((thrown) => void tell(`listen ${path}: ${thrown}`));
  const meta = { progressToken: 7, [META.logLevel]: 'debug' };
  const all = [['server/discover', {}] as const, ...requestsFor('modern', prefix)];
  await askAll(all, (method, params) => client.ask(method, params, { meta }), path, tell);
  listening?.close();
}

async function askAll(
  requests: Requests,
  ask: (method: string, params: Json) => Promise<Outcome>,
  path: string,
  tell: Tell,
): Promise<void> {
  await Promise.all(
    requests.map(async ([method, params]) => {
      const what = `${path} ${method} ${params.name ?? ''}`;
      try {
        const { result, error, status } = await ask(method, params);
        if (result !== undefined) return;
        if (typeof error?.code !== 'number') tell(`${what}: no answer, ${status}`);
        else if (objectOr(error.data).error_code === 'INTERNAL_ERROR')
          tell(`${what}: ${JSON.stringify(error)}`);
      } catch (thrown) {
        if (!String(thrown).includes('still asked after')) tell(`${what}: ${thrown}`); // an error that asks for a visit
      }
    }),
  );
}

/** The lists of all templates and of views have the tools of others, and their calls are answered. */
async function othersAreWell(tell: Tell): Promise<void> {
  for (const [path, name] of [
    ['/mcp', 'well__echo'],
    ['/mcp/desk', 'echo'],
  ] as const) {
    const listed = await app.ask('POST', path, modern('tools/list'));
    const { tools = [] } = objectOr(resultIn(listed.text));
    const names = Array.isArray(tools) ? tools.map((tool) => objectOr(tool).name) : [];
    if (!names.includes(name)) tell(`${path} lists ${listed.text.slice(0, 300)}`);
    const called = await app.ask('POST', path, modern('tools/call', { name, arguments: { text: 'hey' } }));
    if (!called.text.includes('"hey"')) tell(`${path} calls ${called.text.slice(0, 300)}`);
  }
  const found = await app.ask('POST', '/mcp/found', modern('tools/list'));
  if (resultIn(found.text) === undefined) tell(`/mcp/found lists ${found.text.slice(0, 300)}`);
}

/** The result of an answer that is JSON or, if it was slow, an event stream. */
function resultIn(text: string): unknown {
  return objectOr(JSON.parse(/^data: (\{.*"(?:result|error)":.*)$/m.exec(text)?.[1] ?? text)).result;
}

function faults(): string[] {
  return app.log.map((line) => JSON.stringify(line).slice(0, 2_000));
}

test(`of clients (${ODD_CLIENT_RUNS} messages, seed ${seed})`, async () => {
  const problems: string[] = [];
  const servers = await Promise.all(
    (['legacy', 'modern'] as const).map((era) => startOddServer({ era, seed })),
  );
  for (const [at, { url }] of servers.entries())
    await app.gateway.register('sane', { id: `s${at}`, endpoint: url }, { ...settings, waitMs: 5_000 });
  const runs = Array.from({ length: Number(ODD_CLIENT_RUNS) }, (_, run) => run);
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      let session: Readonly<Record<string, string>> = {};
      let path = '';
      for (let run = runs.shift(); run !== undefined; run = runs.shift()) {
        const dice = new Dice(seed + run);
        if (run % 8 < 2) {
          path = dice.pick(['/mcp/sane', '/mcp', '/mcp/desk', '/mcp/found']);
          session = await openSession(app, path);
        }
        const tell: Tell = (what) => problems.push(`run ${run} ${path}: ${what}`);
        if (run % 10 === 0) await answerOddly(dice, path, tell);
        else await clientRun(run, dice, path, session, tell);
      }
    }),
  );
  await othersAreWell((what) => problems.push(what));
  await Promise.all(servers.map((server) => server.close()));
  assert.equal([problems, escaped, faults()], [[], [], []]);
});

async function clientRun(
  run: number,
  dice: Dice,
  path: string,
  session: Readonly<Record<string, string>>,
  tell: Tell,
): Promise<void> {
  const isModern = dice.below(2) === 0;
  const prefix = path === '/mcp' ? 'sane__' : '';
  const { headers, message } = isModern ? modernSent(dice, prefix) : legacySent(dice, prefix, session);
  const body = withOddNode(message, dice);
  current = `client run ${run}: ${body.slice(0, 300)}`;
  const signal = AbortSignal.timeout(withinMs);
  const where = body.slice(0, 400);
  try {
    const response = await fetch(app.url + path, { method: 'POST', headers, body, signal });
    const { status } = response;
    if (
      response.headers.get('content-type') === 'text/event-stream' &&
      body.includes('subscriptions/listen')
    ) {
      await response.body?.cancel();
      return;
    }
    const text = await response.text();
    if (status === 202 && text === '') return;
    if (status === 500 || !/"(result|error_code|code)":/.test(text) || text.includes('INTERNAL_ERROR'))
      tell(`${where}\n  ${status} ${text.slice(0, 500)}`);
  } catch (thrown) {
    tell(`${where}\n  ${thrown}`);
  }
}

/** Clients of both eras get questions of a server, and answer each with an odd node. */
async function answerOddly(dice: Dice, path: string, tell: Tell): Promise<void> {
  const wire = new Wire(app.url);
  const params = { name: path === '/mcp' ? 'sane__ask' : 'ask', arguments: { city: 'Ulm' } };
  const fails = (thrown: unknown): void => tell(`odd answers: ${thrown}`);
  try {
    const client = await LegacyClient.open(wire, path, { capabilities, replies, withinMs });
    const sent: Promise<unknown>[] = [];
    const onMessage = ({ id, method = '' }: Message): void => {
      const reply = Object.entries(replies).find(([known]) => known === method)?.[1];
      if (id === undefined || reply === undefined) return;
      const body = withOddNode({ jsonrpc: '2.0', id, result: reply() }, dice);
      current = `answers ${body.slice(0, 300)}`;
      sent.push(wire.exchange(path, { headers: client.headers, body, withinMs }).catch(fails));
    };
    const body = JSON.stringify(rpc('tools/call', params, 5));
    const { messages, text } = await wire.exchange(path, {
      headers: client.headers,
      body,
      onMessage,
      withinMs,
    });
    await Promise.all(sent);
    if (!messages.some(({ id, result, error }) => id === 5 && (result ?? error) !== undefined))
      tell(`no answer: ${text}`);
    await client.close();

    const newer = new ModernClient(wire, path, { capabilities, withinMs });
    const first = await wire.exchange(path, newer.request('tools/call', params));
    const { requestState, inputRequests } = objectOr(first.messages.at(-1)?.result);
    const inputResponses = Object.fromEntries(
      Object.entries(objectOr(inputRequests)).map(([key, question]) => {
        const reply = Object.entries(replies).find(([known]) => known === objectOr(question).method)?.[1];
        return [key, reply?.()];
      }),
    );
    const second = newer.request('tools/call', { ...params, inputResponses, requestState });
    const odd = withOddNode(JSON.parse(second.body), dice);
    current = `responses ${odd.slice(0, 300)}`;
    const { status, messages: last } = await wire.exchange(path, {
      headers: second.headers,
      body: odd,
      withinMs,
    });
    if (
      status !== 202 &&
      (status === 500 || !last.some(({ result, error }) => (result ?? error) !== undefined))
    )
      tell(`${odd}: ${status}`);
  } catch (thrown) {
    fails(thrown);
  } finally {
    wire.close();
  }
}

interface Sent {
  readonly headers: Readonly<Record<string, string>>;
  readonly message: unknown;
}

function modernSent(dice: Dice, prefix: string): Sent {
  const resourceSubscriptions = ['x://a'];
  const inputResponses = Object.fromEntries(
    Object.entries(replies).map(([method, reply]) => [method, reply()]),
  );
  const [method, params] = dice.pick<Requests[number]>([
    ...requestsFor('modern', prefix),
    ['server/discover', {}],
    ['tools/call', { name: `${prefix}ask`, arguments: { city: 'x' }, inputResponses, requestState: 'x' }],
    ['subscriptions/listen', { notifications: { toolsListChanged: true, resourceSubscriptions } }],
  ]);
  const { headers, body } = modern(method, params);
  const { taskId, uri } = params;
  const named = taskId ?? uri;
  const _meta = {
    ...body.params._meta,
    ...{ [META.clientCapabilities]: capabilities, progressToken: 7, [META.logLevel]: 'debug' },
  };
  return {
    headers: {
      ...headers,
      ...(typeof named === 'string' ? { 'mcp-name': named } : {}),
      'mcp-param-city': 'Ulm',
    },
    message: { ...body, params: { ...body.params, _meta } },
  };
}

function legacySent(dice: Dice, prefix: string, session: Readonly<Record<string, string>>): Sent {
  const requests = requestsFor('legacy', prefix).map(([method, params]) =>
    rpc(method, { ...params, _meta: { progressToken: 'p' } }, dice.below(1_000_000)),
  );
  const clientInfo = { name: 'odd', version: '1', title: 'T', icons: [{ src: 'x' }] };
  const opening = rpc(
    'initialize',
    { protocolVersion: '2025-11-25', capabilities, clientInfo, _meta: {} },
    0,
  );
  const answers = Object.entries(replies).flatMap(([method, reply]) => [
    { jsonrpc: '2.0', id: `1 ${method}`, result: reply() },
    { jsonrpc: '2.0', id: dice.below(3), error: { code: -1, message: 'no', data: [1] } },
  ]);
  const notices = Object.entries({
    'notifications/initialized': {},
    'notifications/cancelled': { requestId: dice.below(5), reason: 'x' },
    'notifications/progress': { progressToken: 1, progress: 1, total: 2 },
    'notifications/roots/list_changed': {},
    'notifications/tasks/status': { taskId: 'task-1', status: 'working' },
  }).map(([method, params]) => ({ jsonrpc: '2.0', method, params }));
  const message = dice.pick<unknown>([
    ...requests,
    ...[opening, opening, ...answers, ...notices],
    [requests[0], ...notices],
    [requests[4], requests[5], answers[0]],
  ]);
  const isOpening = message === opening;
  return { headers: isOpening ? MCP_TYPES : session, message };
}

test.run();
