import * as assert from 'uvu/assert';
import { CLIENT_OPTIONS, gatewayOf } from '../../src/cli/client-options.ts';
import { CommandInput, optionName } from '../../src/cli/command.ts';
import { suite } from '../helpers/suite.ts';
import { recordingTerminal } from './recording-terminal.ts';

const test = suite('client options');

test('are --url and --json', () => {
  assert.equal(CLIENT_OPTIONS.map(optionName), ['url', 'json']);
});

test('name the gateway, by option or by environment', async () => {
  const terminal = recordingTerminal({ env: { STAGEDOOR_URL: 'http://127.0.0.1:2' } });
  const named = await gatewayOf(new CommandInput([], new Map([['url', 'http://127.0.0.1:1/']])), terminal);
  const other = await gatewayOf(new CommandInput([], new Map()), terminal);
  assert.equal([named.url, other.url], ['http://127.0.0.1:1', 'http://127.0.0.1:2']);
});

test.run();
