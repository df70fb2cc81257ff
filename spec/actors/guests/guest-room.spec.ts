// Which conversation is found, and what is counted. How it looks from the outside is in guest-pool.spec.ts.

import * as assert from 'uvu/assert';
import { StatelessConversation } from '../../../src/actors/stateless/stateless-conversation.ts';
import { StatelessRoom } from '../../../src/actors/stateless/stateless-room.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the room of guests');

test('finds a free one of the same key, and no other', () => {
  const room = new StatelessRoom(false);
  const [used, free] = [conversation('k'), conversation('k')];
  for (const one of [used, free, conversation('other')]) room.add(one);
  used.take();
  assert.is(room.free('k'), free);
  free.take();
  assert.equal([room.free('k'), room.free('unknown')], [undefined, undefined]);
});

test('counts one that is retired until it is forgotten, however often it is told so', () => {
  const room = new StatelessRoom(false);
  const one = conversation('k');
  room.add(one);
  room.retire(one);
  room.retire(one);
  assert.equal([room.size, room.open.length, room.all.length, room.free('k')], [1, 0, 1, undefined]);
  room.forget(one);
  assert.equal([room.size, room.all.length], [0, 0]);
});

test('has no room when all are in use', () => {
  const room = new StatelessRoom(false);
  for (let n = 0; n < 64; n += 1) occupy(room, `owner ${n}`);
  assert.throws(() => room.makeRoom('ann', 't'), /Every instance of "t" is busy/);
});

test('has no room for an owner whose share is in use, until he leaves one of them idle', () => {
  const room = new StatelessRoom(false);
  const [first] = Array.from({ length: 16 }, (_, n) => occupy(room, 'ann', `k${n}`));
  assert.throws(() => room.makeRoom('ann', 't'), /You use 16 conversations/);
  occupy(room, 'bob').giveBack();
  assert.throws(() => room.makeRoom('ann', 't'), /You use 16 conversations/);
  first?.giveBack();
  room.makeRoom('ann', 't');
  assert.equal([first?.isFree, room.free('k of bob')?.ownerId], [false, 'bob']);
});

test('has as many on a pipe as its instance may run processes', () => {
  const room = new StatelessRoom(false, { processes: 3, share: 1 });
  for (let n = 0; n < 3; n += 1) occupy(room, 'ann', `k${n}`);
  assert.throws(() => room.makeRoom('ann', 't'), /You use 3 conversations/);
  assert.throws(() => room.makeRoom('bob', 't'), /Every instance of "t" is busy/);
});

test.run();

function occupy(room: StatelessRoom, ownerId: string, key = `k of ${ownerId}`): StatelessConversation {
  room.makeRoom(ownerId, 't');
  const one = conversation(key, ownerId);
  one.take();
  room.add(one);
  return one;
}

function conversation(key: string, ownerId = 'ann'): StatelessConversation {
  const clock = { now: () => 0, alarm: () => () => undefined };
  return new StatelessConversation(clock, {
    key,
    ownerId,
    isExclusive: true,
    isHeard: false,
    open: async () => new ScriptedTransport(),
    onRetired: () => undefined,
  });
}
