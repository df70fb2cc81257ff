// TABLE of all commands, in the order help shows them. One command = one file and one line here.

import type { CommandDefinition, OptionDefinition } from '../command.ts';
import { apiKeys } from './api-keys.ts';
import { bridge } from './bridge.ts';
import { call } from './call.ts';
import { completion } from './completion.ts';
import { config } from './config.ts';
import { connect } from './connect.ts';
import { createApiKey } from './create-api-key.ts';
import { createUser } from './create-user.ts';
import { dbExport } from './db-export.ts';
import { dbImport } from './db-import.ts';
import { dbMigrate } from './db-migrate.ts';
import { dbStatus } from './db-status.ts';
import { deleteTemplate } from './delete-template.ts';
import { deleteUser } from './delete-user.ts';
import { deregister } from './deregister.ts';
import { doctor } from './doctor.ts';
import { drain } from './drain.ts';
import { events } from './events.ts';
import { health } from './health.ts';
import { list } from './list.ts';
import { login } from './login.ts';
import { logout } from './logout.ts';
import { logs } from './logs.ts';
import { register } from './register.ts';
import { restart } from './restart.ts';
import { resume } from './resume.ts';
import { revoke } from './revoke.ts';
import { setPassword } from './set-password.ts';
import { start } from './start.ts';
import { stats } from './stats.ts';
import { status } from './status.ts';
import { stop } from './stop.ts';
import { sync } from './sync.ts';
import { templateAdd } from './template-add.ts';
import { templateInit } from './template-init.ts';
import { templateList } from './template-list.ts';
import { templateShow } from './template-show.ts';
import { templateValidate } from './template-validate.ts';
import { tools } from './tools.ts';
import { users } from './users.ts';

const QUIET: OptionDefinition = {
  flags: '--quiet',
  short: 'q',
  description: 'Show results and errors only: no warnings, no progress',
};

const commands: readonly CommandDefinition[] = [
  start,
  stop,
  logs,
  register,
  deregister,
  drain,
  resume,
  restart,
  deleteTemplate,
  sync,
  list,
  status,
  health,
  stats,
  events,
  tools,
  call,
  login,
  logout,
  createUser,
  users,
  setPassword,
  deleteUser,
  createApiKey,
  apiKeys,
  revoke,
  connect,
  bridge,
  dbStatus,
  dbMigrate,
  dbExport,
  dbImport,
  templateList,
  templateShow,
  templateInit,
  templateValidate,
  templateAdd,
  config,
  doctor,
  completion,
];

/** Every command there is or will be. */
export const COMMANDS: readonly CommandDefinition[] = commands.map((command) => ({
  ...command,
  options: [...command.options, QUIET],
}));
