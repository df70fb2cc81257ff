// TABLE of all commands in the order of help, and their headings in the reference. Commands about one subject share a file.

import type { Command } from '../command.ts';
import { apiKeyCreate, apiKeyList, apiKeyRevoke } from './api-keys.ts';
import { templateApprove, templateTools, viewApprove, viewTools } from './approvals.ts';
import { bridge } from './bridge.ts';
import { clientAdd, clientList, clientRemove } from './clients.ts';
import { completionOf } from './completion.ts';
import { config } from './config.ts';
import { connect } from './connect.ts';
import { connectionAdd, connectionConfirm, connectionList, connectionRemove } from './connections.ts';
import { dbExport, dbImport, dbMigrate, dbRekey, dbStatus } from './database.ts';
import { doctor } from './doctor.ts';
import { gatewayAudit } from './gateway/audit.ts';
import { gatewayEvents } from './gateway/events.ts';
import { gatewayLogin, gatewayLogout } from './gateway/login.ts';
import { gatewayLogLevel, gatewayLogs } from './gateway/logs.ts';
import { gatewayRestart, gatewayStart, gatewayStop } from './gateway/start.ts';
import { gatewayHealth, gatewayStats, gatewayStatus } from './gateway/status.ts';
import { gatewaySync } from './gateway/sync.ts';
import { grantList, grantRevoke } from './grants.ts';
import {
  instanceDeregister,
  instanceDrain,
  instanceList,
  instanceRegister,
  instanceRestart,
  instanceResume,
  instanceSet,
  instanceShow,
} from './instances.ts';
import { nodeDrain, nodeList, nodeResume } from './nodes.ts';
import { sessionEnd, sessionList } from './sessions.ts';
import { templateImport } from './template-import.ts';
import { templateSearch } from './template-search.ts';
import {
  templateAdd,
  templateDelete,
  templateDeleteSettings,
  templateInit,
  templateList,
  templateSet,
  templateShow,
  templateValidate,
} from './templates.ts';
import { toolCall, toolList } from './tools.ts';
import { userCreate, userDelete, userLink, userList, userSet, userSetPassword, userUnlink } from './users.ts';
import { viewDelete, viewList, viewPreview, viewSet, viewShow } from './views.ts';

/** The headings of the reference, each with its commands. */
export const COMMAND_BLOCKS: readonly { readonly title: string; readonly commands: readonly Command[] }[] = [
  {
    title: 'Gateway',
    commands: [
      gatewayStart,
      gatewayStop,
      gatewayRestart,
      gatewayStatus,
      gatewayHealth,
      gatewayStats,
      gatewayEvents,
      gatewayLogs,
      gatewayLogLevel,
      gatewaySync,
      gatewayAudit,
      gatewayLogin,
      gatewayLogout,
    ],
  },
  {
    title: 'Instances',
    commands: [
      instanceList,
      instanceShow,
      instanceRegister,
      instanceDeregister,
      instanceSet,
      instanceDrain,
      instanceResume,
      instanceRestart,
    ],
  },
  { title: 'Tools and sessions', commands: [toolList, toolCall, sessionList, sessionEnd, connect, bridge] },
  { title: 'Nodes', commands: [nodeList, nodeDrain, nodeResume] },
  {
    title: 'Accounts',
    commands: [
      ...[userList, userCreate, userSet, userSetPassword, userLink, userUnlink, userDelete],
      ...[apiKeyList, apiKeyCreate, apiKeyRevoke],
    ],
  },
  {
    title: 'MCP clients, and accounts at servers',
    commands: [
      ...[clientList, clientAdd, clientRemove, grantList, grantRevoke],
      ...[connectionList, connectionAdd, connectionConfirm, connectionRemove],
    ],
  },
  {
    title: 'Templates',
    commands: [
      ...[templateList, templateShow, templateSet, templateDeleteSettings, templateTools, templateApprove],
      ...[templateInit, templateValidate, templateAdd],
      ...[templateSearch, templateImport, templateDelete],
    ],
  },
  {
    title: 'Views',
    commands: [viewList, viewShow, viewSet, viewDelete, viewPreview, viewTools, viewApprove],
  },
  { title: 'Database', commands: [dbStatus, dbMigrate, dbExport, dbImport, dbRekey] },
  { title: 'Help and checks', commands: [config, doctor, completionOf(() => COMMANDS)] },
];

export const COMMANDS: readonly Command[] = COMMAND_BLOCKS.flatMap(({ commands }) => commands);

/** What the commands of a group are about, for help, in its order. */
export const COMMAND_GROUPS: Readonly<Record<string, string>> = {
  gateway: 'A gateway, from its start to its stop',
  instance: 'The servers behind a gateway, each a program or an endpoint',
  template: 'What servers are, and the settings of their instances',
  view: 'MCP servers that are made of tools of several templates',
  tool: 'The tools of a template or a view',
  session: 'The open sessions of MCP clients',
  user: 'Users, their rights, and how they sign in',
  'api-key': 'Keys with which programs call the gateway',
  client: 'MCP clients that may ask users to sign in',
  grant: 'Permissions of MCP clients, each given by a user',
  connection: 'The accounts with which the gateway calls servers that want OAuth',
  node: 'The gateways that share the database',
  db: 'The database of a gateway',
};
