// A multiplexed connection that the system cannot open.

import * as assert from 'uvu/assert';
import { MultiplexedConnection } from '../../../../src/cluster/channel/multiplexed/multiplexed-connection.ts';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { suite } from '../../../helpers/suite.ts';
import { alarmsOf } from '../../../helpers/time/simulated-time.ts';

const test = suite('a multiplexed connection that cannot be opened');

test('leaves no alarm, which would end a connection that was never made', () => {
  const { clock, waiting } = alarmsOf(LIMITS.connectMs);
  const connect = () => {
    throw new Error('the system has no socket');
  };
  const open = () =>
    new MultiplexedConnection({
      ...{ clock, host: 'b', token: 't', over: () => {}, returned: () => {} },
      connector: { connectedEvent: 'connect', connect },
    });
  assert.throws(open, 'no socket');
  assert.is(waiting.size, 0);
});

test.run();
