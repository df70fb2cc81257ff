// Calls through a view that is deleted, or loses their tool, while they are under way: nothing of them starts at a server
// afterwards. A call that has started is answered, unless the view is deleted.

import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { LIMITS } from '../../../src/domain/limits.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import { serving } from '../../helpers/backends/function-backend.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { modernRequest, openSession, postTo } from '../mcp/post.ts';

const test = suite('calls through a view that changes', { timeoutMs: 5_000 });

let gateway: Gateway;
let began: string[] = [];
let ended = 0;
let released: Promise<void>;
let release = (): void => {};

/** Tools wait from now on until `release`. */
function hold(): void {
  began = [];
  ({ promise: released, resolve: release } = Promise.withResolvers<void>());
}

test.before.each(async () => {
  ended = 0;
  hold();
  gateway = await createGateway();
  const tools = serving({
    slow: async (args, { signal }) => {
      began.push(String(Object(args).from));
      signal.addEventListener('abort', () => {
        ended += 1;
      });
      await released;
      return { content: [{ type: 'text', text: 'done' }] };
    },
    other: () => ({ content: [] }),
  });
  const handler: InProcessHandler = (request, context) => {
    const { method } = request;
    if (method === 'prompts/list') return { prompts: [{ name: 'greet' }] };
    if (method === 'resources/list') return { resources: [{ uri: 'file:///a', name: 'a' }] };
    if (method !== 'prompts/get' && method !== 'resources/read') return tools(request, context);
    began.push('view');
    return method === 'prompts/get' ? { messages: [] } : { contents: [] };
  };
  await gateway.register('t', { id: 'one', handler }, { waitMs: 5_000 });
  await gateway.views.put({ id: 'v', from: [{ template: 't' }] });
});
test.after.each(() => gateway.close({ graceMs: 0 }));

const params = { name: 'slow', arguments: { from: 'view' } };
const textOf = (result: unknown): unknown => Object(result).content?.[0]?.text;

/** Calls through the view; each resolves with the text of the result, or the code or the message of the error. */
const doors = {
  'over REST': () =>
    firstValueFrom(gateway.views.exchange('v', { method: 'tools/call', params })).then(
      ({ event }) => (event.kind === 'result' ? textOf(event.result.value) : event.kind),
      ({ code }) => String(code),
    ),
  'of a modern client': async () => {
    const { answer } = await postTo(gateway, { template: 'v', ...modernRequest('tools/call', params) });
    return textOf(answer.result) ?? Object(Object(answer.error).data).error_code;
  },
  'in a session': async () => {
    const headers = await openSession(gateway, 'v');
    const message = { method: 'tools/call', params };
    const { answer } = await postTo(gateway, { template: 'v', headers, message });
    return textOf(answer.result) ?? Object(Object(answer.error).data).error_code;
  },
};

/** Fills the instance with calls that do not come through the view. */
async function fill(): Promise<void> {
  const call = () => void gateway.call('t', 'slow', { from: 'template' }).catch(() => undefined);
  for (let count = 0; count < LIMITS.inFlightPerInstance; count += 1) call();
  await until(() => began.length === LIMITS.inFlightPerInstance);
}

const waiting = () => gateway.snapshot().find(({ template }) => template === 't')?.queued;

for (const [door, call] of Object.entries(doors)) {
  for (const [change, changes, code] of [
    ['is deleted', () => gateway.views.delete('v'), ['TEMPLATE_NOT_FOUND', 'SESSION_NOT_FOUND']],
    [
      'loses its tool',
      () => gateway.views.put({ id: 'v', from: [{ template: 't', tools: ['other'] }] }),
      ['TOOL_NOT_FOUND'],
    ],
    [
      'loses its tool by hints',
      () => gateway.views.put({ id: 'v', from: [{ template: 't', only: { readOnly: true } }] }),
      ['TOOL_NOT_FOUND'],
    ],
  ] as const)
    test(`a call ${door} that waits in the queue while the view ${change} is not sent`, async () => {
      await fill();
      const answered = call();
      await until(() => waiting() === 1);
      await changes();
      release();
      const got = await answered;
      assert.ok(
        code.some((each) => each === got),
        String(got),
      );
      assert.not.ok(began.includes('view'));
    });

  test(`a call ${door} that waits in the queue while the view changes otherwise is sent`, async () => {
    await fill();
    const answered = call();
    await until(() => waiting() === 1);
    await gateway.views.put({ id: 'v', from: [{ template: 't', rename: { slow: 'late' } }] });
    release();
    assert.is(await answered, 'done');
  });

  test(`a call ${door} that a server works on ends when the view is deleted`, async () => {
    const answered = call();
    await until(() => began.includes('view'));
    await gateway.views.delete('v');
    assert.ok(['TEMPLATE_NOT_FOUND', 'SESSION_NOT_FOUND'].includes(String(await answered)));
    assert.is(ended, 1, 'it is cancelled at the server');
  });

  test(`a call ${door} that a server works on is answered although the view loses its tool`, async () => {
    const answered = call();
    await until(() => began.includes('view'));
    await gateway.views.put({ id: 'v', from: [{ template: 't', tools: ['other'] }] });
    release();
    assert.is(await answered, 'done');
  });
}

for (const [method, params, lost, code] of [
  ['prompts/get', { name: 'greet' }, { prompts: 'none' }, 'PROMPT_NOT_FOUND'],
  ['resources/read', { uri: 'file:///a' }, { resources: 'none' }, 'RESOURCE_NOT_FOUND'],
] as const)
  test(`${method} that waits in the queue while the view changes is not sent`, async () => {
    for (const [from, isSent] of [
      [{ template: 't', tools: ['other'] }, true],
      [{ template: 't', ...lost }, false],
    ] as const) {
      await gateway.views.put({ id: 'v', from: [{ template: 't' }] });
      await fill();
      const call$ = gateway.views.exchange('v', { method, params });
      const answered = firstValueFrom(call$).then(
        ({ event }) => event.kind,
        (thrown) => thrown.code,
      );
      await until(() => waiting() === 1);
      await gateway.views.put({ id: 'v', from: [from] });
      release();
      assert.equal([await answered, began.includes('view')], isSent ? ['result', true] : [code, false]);
      hold();
    }
  });

test.run();
