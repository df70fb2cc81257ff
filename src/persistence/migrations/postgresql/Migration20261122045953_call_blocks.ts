import { Migration } from '@mikro-orm/migrations';

export class Migration20261122045953_call_blocks extends Migration {
  override name = 'Migration20261122045953_call_blocks';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "audit_call_blocks" ("id" varchar(64) collate "C" not null, "calls" int not null, "entries" text not null, primary key ("id"));`,
    );

    this.addSql(`drop table "audit_calls";`);
  }

  override down(): void | Promise<void> {
    this.addSql(
      `create table "audit_calls" ("actor" varchar(512) not null, "actor_name" varchar(512) null, "at" timestamptz(3) not null, "details" text not null, "id" varchar(64) collate "C" not null, "outcome" varchar(16) collate "C" not null, "status" int not null, "template" varchar(512) null, "tool" varchar(512) null, primary key ("id"));`,
    );

    this.addSql(`drop table if exists "audit_call_blocks" cascade;`);
  }
}
