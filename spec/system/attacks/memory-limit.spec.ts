// The memory limit that the other specs of this tier rely on works: a program that takes more is killed.

import * as assert from 'uvu/assert';
import { canLimitMemory, MemoryLimit } from '../../helpers/programs/memory-limit.ts';
import { Program } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';
import { MIB } from './attack.ts';

const test = suite('a memory limit');
const withLimit = test.needs(canLimitMemory, 'needs the right to make control groups (root on Linux)');

withLimit('kills a program that needs more', async () => {
  const memory = new MemoryLimit(24 * MIB);
  const program = new Program(['gateway', 'start', '--port', '0'], { memory });
  try {
    assert.is((await program.end()).signal, 'SIGKILL');
  } finally {
    await program.remove();
    await memory.remove();
  }
});

test.run();
