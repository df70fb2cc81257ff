// Revisions of the legacy era as this endpoint speaks them to clients: which one a session has, and what it allows.

import { LEGACY_VERSIONS } from '../../domain/mcp.ts';
import type { Session } from '../ports.ts';

/** Newest first. The last one was never released, but the SDKs accept it. */
export const ACCEPTED_VERSIONS: readonly string[] = [...LEGACY_VERSIONS, '2024-10-07'];

/** True for a revision with a handshake. */
export function isLegacyVersion(version: string): boolean {
  return ACCEPTED_VERSIONS.includes(version);
}

/** The revision to open a session with: the one that was asked for when it is known, else the newest. */
export function versionToOpen(requested: string): string {
  return isLegacyVersion(requested) ? requested : LEGACY_VERSIONS[0];
}

/**
 * The revision of a session: the client's own, unless its backend was asked for that one and speaks an older one only.
 * What a newer backend says more is nothing that older clients stumble over, and every form it has here is the gateway's.
 * Source: MCP 2025-11-25 basic/lifecycle#version-negotiation.
 */
export function versionOf({
  profile,
  peer,
  isShared,
}: Pick<Session, 'profile' | 'peer' | 'isShared'>): string {
  const isAnswer = !isShared && peer.era === 'legacy' && isLegacyVersion(peer.protocolVersion);
  return isAnswer && peer.protocolVersion < profile.protocolVersion
    ? peer.protocolVersion
    : profile.protocolVersion;
}

/** Arrays of messages. Source: 2025-03-26 basic/index#batching; 2025-06-18 changelog: removed. */
export function hasBatches(version: string): boolean {
  return version === '2025-03-26';
}

/**
 * Events without data, and streams that end before the answer: older clients would take the former for a broken message
 * and the latter for the end. Source: 2025-11-25 basic/transports#sending-messages-to-the-server.
 */
export function canPoll(version: string): boolean {
  return version >= '2025-11-25';
}
