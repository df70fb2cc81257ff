import { Compile } from 'typebox/compile';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/account.ts';
import type { ClientStats } from '../../../src/gateway-types.ts';
import {
  clientsOf,
  clientTotals,
  OwnProcessCounts,
  SessionCounts,
} from '../../../src/http/routes/statistics.ts';
import { visibleClients } from '../../../src/http/visible.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the numbers of MCP clients');
const stats: ClientStats = {
  parkedSessions: 4,
  maxSessions: 100,
  templates: new Map([
    [
      'demo',
      {
        sessions: { open: 5, opened: 9, ended: 4, lost: 1, moved: 2 },
        ownProcesses: { running: 1, started: 3, lost: 2 },
      },
    ],
    [
      'other',
      {
        sessions: { open: 10, opened: 10, ended: 0, lost: 0, moved: 0 },
        ownProcesses: { running: 0, started: 0, lost: 0 },
      },
    ],
  ]),
};
const part = { ...ANONYMOUS, templates: new Set(['demo']) };

test('are sums over all templates', () => {
  const totals = clientTotals(visibleClients(stats, ANONYMOUS));
  assert.equal(totals, {
    sessions: { open: 15, parked: 4, max: 100, opened: 19, ended: 4, lost: 1, moved: 2 },
    own_processes: { running: 1, started: 3, lost: 2 },
  });
  assert.ok(Compile(SessionCounts).Check(totals.sessions));
  assert.ok(Compile(OwnProcessCounts).Check(totals.own_processes));
});

test('tell who may use a part of it nothing of the others', () => {
  const seen = visibleClients(stats, part);
  const { sessions } = clientTotals(seen);
  assert.equal(sessions, { open: 5, parked: null, max: 100, opened: 9, ended: 4, lost: 1, moved: 2 });
  assert.ok(Compile(SessionCounts).Check(sessions));
  assert.equal(clientsOf(seen, 'other'), { sessions: 0, own_processes: 0 });
});

test('are those of now for one template, and zeros where nobody ever came', () => {
  const seen = visibleClients(stats, ANONYMOUS);
  assert.equal(clientsOf(seen, 'demo'), { sessions: 5, own_processes: 1 });
  assert.equal(clientsOf(seen, 'constructor'), { sessions: 0, own_processes: 0 });
});

test.run();
