// The options that several commands for a gateway have.

import { JSON_OPTION, type OptionTable } from '../command.ts';

export const URL_OPTION: OptionTable = {
  '--url <url>':
    'URL of the gateway; default STAGEDOOR_URL, else the gateway in the background here, else 127.0.0.1:8080 or :8000, by http or https',
  '--trust': 'Send key or token to this http URL without a proof that its gateway knows them, now and later',
};

export const CLIENT_OPTIONS: OptionTable = {
  ...URL_OPTION,
  ...JSON_OPTION,
};

export const TEMPLATE_OPTION: OptionTable = { '--template <name>': 'Only those of this template' };

/** The option of commands with many columns; see `table` in output.ts. */
export const WIDE_OPTION: OptionTable = {
  '--wide': 'Show every column, also those that are empty or zero in every row; always so in a pipe',
};
