import * as assert from 'uvu/assert';
import { later } from '../../../src/cli/commands/later.ts';
import { suite } from '../../helpers/suite.ts';
import { runCommand } from './against-gateway.ts';

const test = suite('commands that are not built yet');

for (const { name } of later) {
  test(`says that "${name}" is not built yet, whatever follows`, async () => {
    const { code, out, err } = await runCommand([...name.split(' '), 'x', '--role', 'admin']);
    const line = `stagedoor: "stagedoor ${name}" is not built yet`;
    assert.equal({ code, out, err }, { code: 2, out: '', err: line });
  });
}

test.run();
