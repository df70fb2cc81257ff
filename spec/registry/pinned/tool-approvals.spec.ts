// Long lists of pinned templates and views: what is noted of them takes turns of the event loop; and a read of the store during
// an approval. What approvals do is in gateway/views/pinned-tools.spec.ts.

import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { CompiledView } from '../../../src/protocol/aggregate/views/compiled-view.ts';
import { ToolApprovals } from '../../../src/registry/pinned/tool-approvals.ts';
import { until } from '../../helpers/eventually.ts';
import { errorOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { TurnCounter, turnsOf, untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('tool approvals');
const TOOLS = Array.from({ length: 10_000 }, (_, n) => ({
  name: `tool-${n}`,
  inputSchema: { type: 'object' },
}));

function setUp(store = new MemoryStore().approvals) {
  const approved = new TurnCounter();
  const approvals = new ToolApprovals({
    store,
    scheduler: untimedScheduler(),
    emit: ({ type }) => type === 'tool.approved' && approved.note(),
    clock: systemClock,
    hintsOf: () => ({}),
    onChanged: () => {},
    changes: { run: (work) => work(), advance: () => true },
  });
  return { approvals, approved };
}

test('10,000 tools of a pinned template are noted and approved in several turns', async () => {
  const { approvals, approved } = setUp();
  approvals.setPinned('t', true);
  await approvals.read([], []);
  const trust = approvals.trustOf('t');
  const digests = await trust?.digestsOf(TOOLS);
  assert.ok(trust !== undefined && digests !== undefined);
  const turns = await turnsOf(() => trust.listed(digests, 'all'));
  assert.ok(turns >= 4, `${turns} turns`);
  await until(() => approved.all >= TOOLS.length);
  assert.ok(approved.fullest <= TOOLS.length / 4, `${approved.fullest} in one turn`);
  assert.equal(approvals.withheldFrom('t'), []);
});

test('definitions that wait are kept as long as their memory has room', async () => {
  const { approvals } = setUp();
  approvals.setPinned('t', true);
  await approvals.read([], []);
  const trust = approvals.trustOf('t');
  const ofManyValues = Array.from({ length: 10 }, (_, n) => ({
    name: `tool-${n}`,
    inputSchema: { type: 'object', examples: Array.from({ length: 90_000 }, () => ({})) },
  }));
  const digests = await trust?.digestsOf(ofManyValues);
  assert.ok(trust !== undefined && digests !== undefined);
  await trust.listed(digests, 'some');
  assert.is(approvals.waitingDefinitions('t').length, 8);
});

test('so are those of a pinned view', async () => {
  const { approvals } = setUp();
  const view = { id: 'v', title: 'V', from: [{ template: 't' }], approve: 'pinned' } as const;
  approvals.setView('v', view);
  await approvals.read([], []);
  const chosen = new CompiledView(view).chosen('tools', 't', TOOLS);
  assert.is(chosen.length, TOOLS.length);
  const turns = await turnsOf(() => approvals.waitingIn('v', chosen));
  assert.ok(turns >= 8, `${turns} turns`);
});

test('a view that is pinned renews the trust of its own templates only', async () => {
  const { approvals } = setUp();
  const pin = (from: number, to: number) => {
    for (let n = from; n < to; n += 1)
      approvals.setView(`v${n}`, {
        id: `v${n}`,
        from: [{ template: `t${n}` }, { template: 't' }],
        approve: 'pinned',
      });
  };
  pin(0, 100);
  const [ofAll, ofOne] = [approvals.trustOf('t'), approvals.trustOf('t7')];
  assert.ok(ofAll !== undefined && ofOne !== undefined);
  pin(100, 1_000);
  assert.is(approvals.trustOf('t7'), ofOne);
  assert.is.not(approvals.trustOf('t'), ofAll);
  assert.is(approvals.trustOf('t')?.isRequiredFor('v999'), true);
  assert.is(approvals.trustOf('t7')?.isRequiredFor('v8'), false);
  approvals.setView('v7', { id: 'v7', from: [{ template: 't8' }], approve: 'pinned' });
  assert.is(approvals.trustOf('t7'), undefined);
  assert.is(approvals.trustOf('t8')?.isRequiredFor('v7'), true);
  approvals.setView('v8', undefined);
  assert.is(approvals.trustOf('t8')?.isRequiredFor('v8'), false);
});

test('a read that began before an approval does not undo it: only one first list is trusted', async () => {
  const store = new MemoryStore().approvals;
  const answered = Promise.withResolvers<void>();
  let isSlow = false;
  const list = async () => {
    const stored = await store.list();
    if (isSlow) await answered.promise;
    return stored;
  };
  const { approvals, approved } = setUp({ ...store, list });
  approvals.setPinned('t', true);
  await approvals.read([], []);
  isSlow = true;
  const reading = approvals.read([], []);
  const trust = approvals.trustOf('t');
  const [first, second] = [{ description: 'as it was approved' }, { description: 'another one' }].map(
    (more) => ({ name: 'tool', inputSchema: { type: 'object' }, ...more }),
  );
  assert.ok(trust !== undefined && first !== undefined && second !== undefined);
  const digests = await trust.digestsOf([first, second]);
  await trust.listed(await trust.digestsOf([first]), 'all');
  await until(() => approved.all === 1);
  answered.resolve();
  await reading;
  const isApproved = (tool: typeof first) => {
    const own = digests.get(tool);
    return own !== undefined && trust.isApproved('tool', own);
  };
  assert.equal([isApproved(first), isApproved(second)], [true, false]);
});

test('an approval of which a part could be stored was perhaps made', async () => {
  const { approvals: store } = new MemoryStore();
  await store.save([{ scope: 't', tool: 'first', digests: ['a'], definition: { name: 'first' } }]);
  let [saves, failing] = [0, 1];
  const save: typeof store.save = async (rows) => {
    saves += 1;
    if (saves === failing) throw databaseUnavailable(new Error('away'), 'no');
    return store.save(rows);
  };
  const { approvals } = setUp({ ...store, save });
  approvals.setPinned('t', true);
  await approvals.read([], []);
  const trust = approvals.trustOf('t');
  const digests = await trust?.digestsOf(TOOLS);
  assert.ok(trust !== undefined && digests !== undefined);
  await trust.listed(digests, 'all');
  assert.is((await errorOf(approvals.approve('t'))).delivered, 'no');
  failing = 3;
  assert.is((await errorOf(approvals.approve('t'))).delivered, 'unknown');
});

test.run();
