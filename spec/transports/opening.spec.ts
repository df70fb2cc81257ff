import * as assert from 'uvu/assert';
import { openingWith } from '../../src/transports/opening.ts';
import { instanceDefinition, openOptions } from '../conformance/transport.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('opening');

test('opens the kind of the definition, as it is really launched', async () => {
  const { signal, ...options } = openOptions({ handlers: new Map([['launched', () => ({})]]) });
  const open = openingWith({ ...options, launch: (definition) => ({ ...definition, serverId: 'launched' }) });
  const definition = { ...instanceDefinition({}), transport: 'in-process', serverId: 'registered' } as const;
  const transport = await open(definition, signal);
  assert.is(transport.kind, 'in-process');
  await transport.close();
});

test.run();
