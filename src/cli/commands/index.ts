// TABLE of all commands, in the order help shows them. One command = one file and one line here.

import type { CommandDefinition } from '../command.ts';
import { config } from './config.ts';
import { deregister } from './deregister.ts';
import { later } from './later.ts';
import { list } from './list.ts';
import { register } from './register.ts';
import { start } from './start.ts';
import { status } from './status.ts';

/** Every command there is or will be. */
export const COMMANDS: readonly CommandDefinition[] = [
  start,
  register,
  deregister,
  list,
  status,
  config,
  ...later,
];
