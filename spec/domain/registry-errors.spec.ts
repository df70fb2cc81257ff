// What is told of things that are not registered, or may not be.

import * as assert from 'uvu/assert';
import {
  commandNotAllowed,
  configIncomplete,
  duplicateServer,
  endpointNotAllowed,
  registryFull,
  serverNotFound,
  templateNotFound,
} from '../../src/domain/error-catalogue.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('registry errors');

for (const [fact, error, expected] of [
  ['no template', templateNotFound('weather'), { code: 'TEMPLATE_NOT_FOUND', status: 404 }],
  ['no server', serverNotFound('w-1'), { code: 'SERVER_NOT_FOUND', status: 404 }],
  ['a duplicate', duplicateServer('w-1'), { code: 'DUPLICATE_SERVER', status: 400 }],
  ['a missing setting', configIncomplete('no endpoint'), { code: 'CONFIG_INCOMPLETE', status: 400 }],
  ['a denied endpoint', endpointNotAllowed('denied'), { code: 'ENDPOINT_NOT_ALLOWED', status: 400 }],
  ['a denied command', commandNotAllowed('denied'), { code: 'COMMAND_NOT_ALLOWED', status: 403 }],
  ['one too many', registryFull('instances', 2), { code: 'REGISTRY_FULL', status: 400 }],
] as const) {
  test(`answers ${fact} with ${expected.status} ${expected.code}`, () => {
    const { code, status, delivered } = error;
    assert.equal({ code, status, delivered }, { ...expected, delivered: 'no' });
  });
}

test('names in its text what is missing, or was too much', () => {
  assert.equal(
    [templateNotFound('weather').message, registryFull('instances', 2).message],
    [
      'No template named "weather" is registered.',
      'There are 2 instances already, which is the most there may be.',
    ],
  );
});

test.run();
