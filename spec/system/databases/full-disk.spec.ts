// The disk of a SQLite file is full, and then has space again: changes are refused meanwhile and /health reports it, calls
// continue, acknowledged changes are kept, and the gateway recovers without a restart. On a real file system of 3 MB.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { caller, field, listed, statusAndCode } from '../../helpers/clients/caller.ts';
import { becomes, untilStatus } from '../../helpers/eventually.ts';
import { PASSWORD, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: full disk', { timeoutMs: 90_000 });
const folder = mkdtempSync(join(tmpdir(), 'stagedoor-full-disk-'));
const mount = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', folder]);
const isMounted = mount.status === 0;
test.after(() => {
  if (isMounted) spawnSync('umount', ['--lazy', folder]);
  rmdirSync(folder);
});
const onSmallDisk = test.needs(
  isMounted,
  'a small file system needs the right to mount one; orm-operations.spec.ts has the same with a limit of SQLite',
);

const start = () => startGuarded({ folder, env: { GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' } });

onSmallDisk('a full disk refuses changes but not calls, and changes work again afterwards', async () => {
  const backend = await startHttpServer({ name: 'one' });
  const gateway = await start();
  const gateways = [gateway];
  try {
    const { admin, program } = gateway;
    const anybody = caller(gateway.url);
    const register = (id: string) =>
      admin('POST /gateway/register?wait=20', {
        template_name: 'far',
        instance: { id, endpoint: backend.url, metadata: { padding: 'x'.repeat(10_000) } },
      });
    const acknowledged: string[] = [];
    const registered = async (id: string): Promise<boolean> => {
      const answer = await register(id);
      if (answer.status === 201) acknowledged.push(`far/${id}`);
      else assert.equal(statusAndCode(answer), [503, 'DATABASE_UNAVAILABLE'], JSON.stringify(answer.body));
      return answer.status === 201;
    };
    assert.ok(await registered('first'));

    let count = 0;
    const sick = await untilStatus(503, async () => {
      // A connection that closes removes its journal, which frees space.
      fill(join(folder, 'ballast'));
      count += 1;
      await registered(`filling-${count}`);
      return anybody('GET /health');
    });
    assert.is(field(sick, 'database'), 'disconnected');
    assert.is(await registered('refused'), false);
    // Queries may fail, too: then the watch of the revision names the reason.
    await becomes(() => /"reason":.*SQLITE_/.test(program.err), true);
    assert.is((await anybody('GET /readyz')).status, 200);
    const call = await admin('POST /mcp/far/tools/call', { name: 'name' });
    assert.is(call.status, 200, JSON.stringify(call.body));

    rmSync(join(folder, 'ballast'));
    assert.is(field(await untilStatus(200, () => anybody('GET /health')), 'database'), 'connected');
    for (const id of ['after-1', 'after-2']) assert.ok(await registered(id));
    assert.is((await anybody('POST /auth/login', { username: 'admin', password: PASSWORD })).status, 200);
    assert.equal(Object.keys(await listed(admin)).toSorted(), acknowledged.toSorted());

    program.signal('SIGKILL');
    await program.end();
    const again = await start();
    gateways.push(again);
    const kept = await listed(again.admin);
    assert.equal(Object.keys(kept).toSorted(), acknowledged.toSorted());
  } finally {
    for (const { remove } of gateways) await remove();
    await backend.close();
  }
});

test.run();

/** Writes until there is no space for another 4 kB. */
function fill(path: string): void {
  for (const size of [256 * 1024, 4 * 1024]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' });
    } catch (error) {
      assert.is(Reflect.get(Object(error), 'code'), 'ENOSPC');
    }
  }
}
