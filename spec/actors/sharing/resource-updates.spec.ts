// Which updates are whose, and that nothing is left behind.

import { concat, NEVER, of, Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { resourceUpdates } from '../../../src/actors/change-feed.ts';
import { SharedSubscriptions } from '../../../src/actors/sharing/shared-subscriptions.ts';
import type { ServerMessage } from '../../../src/domain/client.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('updates of resources');

test('are subscribed to together with others, picked out, and given up', () => {
  const backend = new ScriptedTransport();
  const messages$ = new Subject<ServerMessage>();
  const subscriptions = new SharedSubscriptions();
  const conversation = {
    peer: backend.peer,
    state$: concat(of('open'), NEVER),
    exchange: backend.exchange.bind(backend),
  };
  const heard: unknown[][] = [[], []];
  const updates = [['x:1', 'x:2'], ['x:2']].map((uris, index) =>
    resourceUpdates({ conversation, messages$ }, new Set(uris), subscriptions).subscribe(({ params }) =>
      heard[index]?.push(params.uri),
    ),
  );
  for (const exchange of backend.open) exchange.result();
  for (const uri of ['x:1', 'x:2', 'x:3', 'x:1?y']) {
    messages$.next({ kind: 'notification', method: 'notifications/resources/updated', params: { uri } });
  }
  messages$.next({
    kind: 'notification',
    method: 'notifications/tools/list_changed',
    params: { uri: 'x:1' },
  });
  assert.equal(heard, [['x:1', 'x:2', 'x:1?y'], ['x:2']]);
  for (const subscription of updates) subscription.unsubscribe();
  for (const exchange of backend.open) exchange.result();
  assert.equal(
    backend.exchanges.map(({ request: { method, params } }) => `${method.slice(10)} ${params?.uri}`),
    ['subscribe x:1', 'subscribe x:2', 'unsubscribe x:1', 'unsubscribe x:2'],
  );
  assert.equal([messages$.observed, subscriptions.size], [false, 0]);
});

test.run();
