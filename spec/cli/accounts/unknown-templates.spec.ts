import * as assert from 'uvu/assert';
import { warnOfUnknownTemplates } from '../../../src/cli/accounts/account-client.ts';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('unknown templates');
const known = async () => ['files', 'search'];

test('are named one by one, with the one that was probably meant', async () => {
  assert.equal(await warnings(['file', 'search', 'weather'], known), [
    'warning: template "file" does not exist yet; did you mean "files"?',
    'warning: template "weather" does not exist yet',
  ]);
});

test('are nothing where all are known, or none is named: then nobody is asked', async () => {
  assert.equal(await warnings(['search', 'files'], known), []);
  const refuse = () => Promise.reject(new Error('not to be asked'));
  assert.equal(await warnings(undefined, refuse), []);
  assert.equal(await warnings([], refuse), []);
});

test('are not looked for when that is refused, but a defect is shown', async () => {
  assert.equal(await warnings(['x'], () => Promise.reject(new CommandFailure('not allowed'))), []);
  const defect = await warnings(['x'], () => Promise.reject(new Error('a defect'))).catch(String);
  assert.is(defect, 'Error: a defect');
});

test.run();

async function warnings(
  wanted: readonly string[] | undefined,
  templates: () => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const complaints: string[] = [];
  await warnOfUnknownTemplates({ templates }, wanted, { note: (text) => void complaints.push(text) });
  return complaints;
}
