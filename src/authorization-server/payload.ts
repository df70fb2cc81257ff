// The content of a row that the library of the authorization server has written. The library checks the fields itself.

import type { AdapterPayload } from 'oidc-provider';
import Type from 'typebox';
import { rowReader } from '../persistence/oauth-rows.ts';

export const readPayload = rowReader(Type.Unsafe<AdapterPayload>(Type.Object({})));
