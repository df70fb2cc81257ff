import { Migration } from '@mikro-orm/migrations';

export class Migration20261122045954_call_blocks extends Migration {
  override name = 'Migration20261122045954_call_blocks';

  override up(): void | Promise<void> {
    this.addSql(
      `create table [audit_call_blocks] ([id] nvarchar(64) collate Latin1_General_BIN2 not null, [calls] int not null, [entries] varchar(max) not null, constraint [audit_call_blocks_pkey] primary key ([id]));`,
    );

    this.addSql(`drop table [audit_calls];`);
  }

  override down(): void | Promise<void> {
    this.addSql(
      `create table [audit_calls] ([actor] nvarchar(512) not null, [actor_name] nvarchar(512) null, [at] datetime2(3) not null, [details] varchar(max) not null, [id] nvarchar(64) collate Latin1_General_BIN2 not null, [outcome] nvarchar(16) collate Latin1_General_BIN2 not null, [status] int not null, [template] nvarchar(512) null, [tool] nvarchar(512) null, constraint [audit_calls_pkey] primary key ([id]));`,
    );

    this.addSql(`if object_id('[audit_call_blocks]', 'U') is not null drop table [audit_call_blocks];`);
  }
}
