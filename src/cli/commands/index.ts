// TABLE of all commands, in the order help shows them. Commands about one subject share a file.

import type { Command } from '../command.ts';
import { apiKeys, createApiKey, revoke } from './api-keys.ts';
import { templateApprove, templateTools, viewApprove, viewTools } from './approvals.ts';
import { audit } from './audit.ts';
import { bridge } from './bridge.ts';
import { clients } from './clients.ts';
import { completionOf } from './completion.ts';
import { config } from './config.ts';
import { connect } from './connect.ts';
import { addConnection, confirmServer, connections, removeConnection } from './connections.ts';
import { dbExport, dbImport, dbMigrate, dbRekey, dbStatus } from './database.ts';
import { doctor } from './doctor.ts';
import { events } from './events.ts';
import { grants, revokeGrant } from './grants.ts';
import {
  deleteTemplate,
  deregister,
  drain,
  instanceSet,
  register,
  restart,
  resume,
  sync,
  templateDelete,
} from './instances.ts';
import { login, logout } from './login.ts';
import { logLevel, logs } from './logs.ts';
import { drainNode, nodes, resumeNode } from './nodes.ts';
import { endSession, sessions } from './sessions.ts';
import { start, stop } from './start.ts';
import { health, list, stats, status } from './status.ts';
import { templateImport } from './template-import.ts';
import { templateSearch } from './template-search.ts';
import {
  templateAdd,
  templateInit,
  templateList,
  templateSet,
  templateShow,
  templateValidate,
} from './templates.ts';
import { call, tools } from './tools.ts';
import { createUser, deleteUser, setPassword, users, usersLink, usersSet, usersUnlink } from './users.ts';
import { deleteView, previewView, setView, showView, views } from './views.ts';

export const COMMANDS: readonly Command[] = [
  ...[start, stop, logs, register, deregister, drain, resume, restart, instanceSet, deleteTemplate, sync],
  ...[list, status, health, stats, events, logLevel, nodes, drainNode, resumeNode],
  ...[sessions, endSession, audit, tools, call],
  ...[login, logout, createUser, users, usersSet, usersLink, usersUnlink, setPassword, deleteUser],
  ...[createApiKey, apiKeys, revoke],
  ...[clients, grants, revokeGrant, connections, addConnection, confirmServer, removeConnection],
  ...[connect, bridge, dbStatus, dbMigrate, dbExport, dbImport, dbRekey],
  ...[templateList, templateShow, templateSet, templateTools, templateApprove],
  ...[templateInit, templateValidate, templateAdd],
  ...[templateSearch, templateImport, templateDelete],
  ...[views, showView, setView, deleteView, previewView, viewTools, viewApprove],
  ...[config, doctor, completionOf(() => COMMANDS)],
];
