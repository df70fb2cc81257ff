// Updates of resources that a view does not have: a server may report a part of a resource that the client has subscribed to.

import { firstValueFrom, NEVER, Observable, of, Subject, toArray } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeRequest, SourcedEvent } from '../../../src/domain/calls/exchange.ts';
import { type Notification, updateNotice } from '../../../src/domain/mcp/client.ts';
import type { ListField } from '../../../src/domain/mcp/mcp.ts';
import { NO_NAMES } from '../../../src/domain/views/view.ts';
import { allTemplates } from '../../../src/protocol/aggregate/all-templates.ts';
import { CompiledView } from '../../../src/protocol/aggregate/views/compiled-view.ts';
import { ViewDirectory } from '../../../src/protocol/aggregate/views/view-directory.ts';
import { suite } from '../../helpers/suite.ts';
import { simulateTime } from '../../helpers/time/simulated-time.ts';
import { ADA, answered, ListingBackends, PROFILE } from '../listing-backends.ts';
import { aggregateOf, fixed } from './aggregate-of.ts';

const test = suite('updates in a view');
simulateTime(test);
const DIR = 'file:///dir';
const OPEN = `${DIR}/open`;
const HIDDEN = [`${DIR}/secret`, `${DIR}/s%65cret`, 'file:///secret'];

function setUp() {
  const a = new ListingBackends({ tools: [{ name: 'x' }], resources: [{ uri: DIR }] });
  const resources = ['*', '!file:///dir/secret', '!file:///secret'];
  const compiled = new CompiledView({ id: 'v', title: 'V', from: [{ template: 'a', resources }] });
  const names = { nameTargets: () => NO_NAMES, keepTargets: () => {}, version: () => 0 };
  const { aggregated } = aggregateOf({
    ...fixed({ a }),
    selectionOf: (lists, templates, scheduler) => ({
      ...allTemplates(lists, templates, scheduler),
      view: 'v',
      directory: new ViewDirectory({ lists, scheduler, templates, view: () => compiled, ...names }),
    }),
  });
  return { a, aggregated };
}

test('a legacy client gets none of what the view hides, outside of calls and during them', async () => {
  const { a, aggregated } = setUp();
  const session = await aggregated.openSession(ADA, PROFILE);
  const ask = (request: ExchangeRequest) => firstValueFrom(session.exchange(request));
  await ask({ method: 'resources/subscribe', params: { uri: DIR } });
  const received: unknown[] = [];
  session.messages$.subscribe(({ params }) => received.push(params.uri));
  for (const uri of [...HIDDEN, OPEN, DIR]) a.sessions[0]?.messages.next(updateNotice(uri));
  assert.equal(received, [OPEN, DIR]);
  await ask({ method: 'tools/list', params: {} });
  const during = [...HIDDEN, OPEN].map(
    (uri): SourcedEvent => ({ ...answered({}), event: updateNotice(uri) }),
  );
  a.instead = of(...during, answered({}));
  const call: ExchangeRequest = { method: 'tools/call', params: { name: 'x' } };
  const answers = await firstValueFrom(session.exchange(call).pipe(toArray()));
  const uris = answers.flatMap(({ event }) => (event.kind === 'notification' ? event.params.uri : []));
  assert.equal([uris, answers.length], [[OPEN], 2]);
});

test('so does a client without a session', async () => {
  const { a, aggregated } = setUp();
  const received: unknown[] = [];
  const wanted = { lists: new Set<ListField>(), resources: new Set([DIR]) };
  const updates$ = new Subject<Notification>();
  const { promise: subscribed, resolve: subscribe } = Promise.withResolvers<void>();
  const followed$ = new Observable<Notification>((subscriber) => {
    subscribe();
    return updates$.subscribe(subscriber);
  });
  a.changes = (_owner, _profile, { resources }) => (resources.size === 0 ? NEVER : followed$);
  aggregated.changes(ADA, PROFILE, wanted).subscribe(({ params }) => received.push(params.uri));
  await subscribed;
  for (const uri of [...HIDDEN, OPEN, DIR]) updates$.next(updateNotice(uri));
  assert.equal(received, [OPEN, DIR]);
});

test.run();
