// What one instance has open: it waits for its turn, and can be asked when the last of it is gone. Time is simulated.

import * as assert from 'uvu/assert';
import { Openings } from '../../../src/actors/instances/openings.ts';
import { asGatewayError } from '../../../src/domain/errors.ts';
import { ScriptedOpener } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { definition } from './instance-harness.ts';

const test = suite('openings');

test('does not open what was called off meanwhile', async () => {
  const opener = new ScriptedOpener();
  const controller = new AbortController();
  const opening = new Openings(opener.open, new Promise(() => undefined));
  const opened = opening.open(definition(), controller.signal);
  controller.abort();
  const error = await opened.catch(asGatewayError);
  assert.equal('delivered' in error && error.delivered, 'no');
  assert.is(opener.openings.length, 0);
  await opening.close();
});

test.run();
