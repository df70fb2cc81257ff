// A gateway on a SQLite file is killed with SIGKILL during registrations, several times. Each registration that was answered
// with 201 exists after the next start, and the file is intact.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { caller, listed } from '../../helpers/clients/caller.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { type McpHarness, startHarness } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const registrations = 400;
const kills = 4;
const atOnce = 8;
/** Nothing listens there: a registration does not wait for its instance. */
const endpoint = 'http://127.0.0.1:1/mcp';

const test = suite('journey: kill during registrations', { timeoutMs: 240_000 });
const folder = folderOfAll(test)();
const gateways: McpHarness[] = [];
test.after(async () => {
  for (const gateway of gateways) await gateway.remove();
});

test(`${registrations} registrations and ${kills} kills lose nothing that was answered 201`, async () => {
  const waiting = Array.from({ length: registrations }, (_, index) => `i${String(index).padStart(4, '0')}`);
  const answered = new Set<string>();
  for (let round = 0; round <= kills; round += 1) {
    const { program, url } = await startGateway();
    const before = new Set(await registeredIds(url));
    assert.equal(
      [...answered].filter((id) => !before.has(id)),
      [],
      `lost in round ${round}`,
    );
    assert.equal(integrityOf(join(folder, 'gateway.db')), [{ integrity_check: 'ok' }]);
    // A registration at the time of the kill may exist without an answer; a real client would check, and continue.
    for (const id of before) answered.add(id);
    const todo = waiting.filter((id) => !answered.has(id));
    const isLast = round === kills;
    const killAfter = isLast ? Number.POSITIVE_INFINITY : 1 + Math.floor((Math.random() * todo.length) / 3);
    let answers = 0;
    const onAnswer = async (id: string): Promise<void> => {
      answered.add(id);
      answers += 1;
      if (answers !== killAfter) return;
      // At any time between two answers, not only right after one.
      await delay(Math.random() * 10);
      program.process.kill('SIGKILL');
    };
    await registerAll(url, todo, onAnswer);
    if (isLast) break;
    assert.equal(await program.end(), { code: null, signal: 'SIGKILL' });
    assert.ok(answers >= killAfter, `killed in the middle of round ${round}`);
  }
  assert.is(answered.size, registrations);

  await stopLast();
  const { url } = await startGateway();
  assert.equal((await registeredIds(url)).toSorted(), waiting);
  assert.equal(integrityOf(join(folder, 'gateway.db')), [{ integrity_check: 'ok' }]);
});

test.run();

async function startGateway(): Promise<McpHarness> {
  const gateway = await startHarness({ env: { GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' }, folder });
  gateways.push(gateway);
  return gateway;
}

async function stopLast(): Promise<void> {
  const program = gateways.at(-1)?.program;
  program?.signal('SIGTERM');
  assert.equal(await program?.end(60_000), { code: 0, signal: null });
}

/** Registers until all are answered, or until the gateway is gone. */
async function registerAll(
  url: string,
  ids: readonly string[],
  onAnswer: (id: string) => Promise<void>,
): Promise<void> {
  const waiting = [...ids];
  let isGone = false;
  const worker = async (): Promise<void> => {
    for (let id = waiting.shift(); id !== undefined && !isGone; id = waiting.shift()) {
      try {
        const body = { template_name: 'demo', instance: { id, endpoint } };
        assert.is((await caller(url)('POST /gateway/register', body)).status, 201);
      } catch (thrown) {
        // fetch throws a TypeError when there is no answer; any other error is a failure of this test.
        if (!(thrown instanceof TypeError)) throw thrown;
        isGone = true;
        return;
      }
      await onAnswer(id);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

async function registeredIds(url: string): Promise<string[]> {
  return Object.values(await listed(caller(url))).map(({ id }) => id);
}

function integrityOf(file: string): unknown[] {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return database
      .prepare('pragma integrity_check')
      .all()
      .map((row) => ({ ...row }));
  } finally {
    database.close();
  }
}
