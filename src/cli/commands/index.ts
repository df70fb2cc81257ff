// TABLE of all commands in the order of help, and their headings in the reference. Commands about one subject share a file.

import type { Command, CommandBlock } from '../command.ts';
import { apiKeys, createApiKey, revoke } from './api-keys.ts';
import { templateApprove, templateTools, viewApprove, viewTools } from './approvals.ts';
import { audit } from './audit.ts';
import { bridge } from './bridge.ts';
import { clientAdd, clientList, clientRemove } from './clients.ts';
import { completionOf } from './completion.ts';
import { config } from './config.ts';
import { connect } from './connect.ts';
import { addConnection, confirmServer, connections, removeConnection } from './connections.ts';
import { dbExport, dbImport, dbMigrate, dbRekey, dbStatus } from './database.ts';
import { doctor } from './doctor.ts';
import { events } from './events.ts';
import { grants, revokeGrant } from './grants.ts';
import {
  deregister,
  drain,
  instanceRestart,
  instanceSet,
  instanceShow,
  register,
  resume,
  sync,
} from './instances.ts';
import { login, logout } from './login.ts';
import { logLevel, logs } from './logs.ts';
import { drainNode, nodes, resumeNode } from './nodes.ts';
import { endSession, sessions } from './sessions.ts';
import { restart, start, stop } from './start.ts';
import { health, list, stats, status } from './status.ts';
import { templateImport } from './template-import.ts';
import { templateSearch } from './template-search.ts';
import {
  deleteSettings,
  templateAdd,
  templateDelete,
  templateInit,
  templateList,
  templateSet,
  templateShow,
  templateValidate,
} from './templates.ts';
import { call, tools } from './tools.ts';
import { createUser, deleteUser, setPassword, users, usersLink, usersSet, usersUnlink } from './users.ts';
import { deleteView, previewView, setView, showView, views } from './views.ts';

/** The headings of the reference, each with its commands. */
export const COMMAND_BLOCKS: readonly CommandBlock[] = [
  {
    title: 'Gateway',
    commands: [
      start,
      stop,
      restart,
      status,
      health,
      stats,
      events,
      logs,
      logLevel,
      sync,
      audit,
      login,
      logout,
    ],
  },
  {
    title: 'Instances',
    commands: [list, instanceShow, register, deregister, instanceSet, drain, resume, instanceRestart],
  },
  { title: 'Tools and sessions', commands: [tools, call, sessions, endSession, connect, bridge] },
  { title: 'Nodes', commands: [nodes, drainNode, resumeNode] },
  {
    title: 'Accounts',
    commands: [
      ...[users, createUser, usersSet, setPassword, usersLink, usersUnlink, deleteUser],
      ...[apiKeys, createApiKey, revoke],
    ],
  },
  {
    title: 'MCP clients, and accounts at servers',
    commands: [
      ...[clientList, clientAdd, clientRemove, grants, revokeGrant],
      ...[connections, addConnection, confirmServer, removeConnection],
    ],
  },
  {
    title: 'Templates',
    commands: [
      ...[templateList, templateShow, templateSet, deleteSettings, templateTools, templateApprove],
      ...[templateInit, templateValidate, templateAdd],
      ...[templateSearch, templateImport, templateDelete],
    ],
  },
  { title: 'Views', commands: [views, showView, setView, deleteView, previewView, viewTools, viewApprove] },
  { title: 'Database', commands: [dbStatus, dbMigrate, dbExport, dbImport, dbRekey] },
  { title: 'Help and checks', commands: [config, doctor, completionOf(() => COMMANDS)] },
];

export const COMMANDS: readonly Command[] = COMMAND_BLOCKS.flatMap(({ commands }) => commands);

/** What the commands of a group are about, for help, in its order. */
export const GROUPS: Readonly<Record<string, string>> = {
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
