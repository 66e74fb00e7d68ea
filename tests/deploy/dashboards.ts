// What the dashboards may be: Grafana's own types, and those of the panels in use. Grafana's leave open what a panel's options
// and queries are. Names of enums are written as the text that they stand for, which is how they are in JSON.

import type { Dashboard, GraphFieldConfig, Panel, RowPanel } from "@grafana/schema";
import type { Options as Stat } from "@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen.d.ts";
import type { Options as Table } from "@grafana/schema/dist/types/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen.d.ts";
import type { Options as Timeseries } from "@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.d.ts";

type Json<T> = unknown extends T
  ? T
  : T extends string
    ? `${T}`
    : T extends (infer One)[]
      ? Json<One>[]
      : T extends object
        ? { [Key in keyof T]: Json<T[Key]> }
        : T;

/** Of its data source for Prometheus, which is no part of the package. */
interface Query {
  refId: string;
  datasource: { type: "prometheus"; uid: string };
  expr: string;
  legendFormat: string;
  range: boolean;
  instant: boolean;
  format: "time_series" | "table";
}

type Defaults = NonNullable<Panel["fieldConfig"]>["defaults"];

/** A panel that shows something, with what it is for. */
type Of<Kind, Options, Custom> = Json<Omit<Panel, "type" | "title" | "description" | "options" | "fieldConfig" | "targets">> & {
  type: Kind;
  title: string;
  description: string;
  options: Json<Partial<Options>>;
  fieldConfig: { defaults: Json<Omit<Defaults, "custom">> & { custom: Json<Custom> }; overrides: [] };
  targets: [Query, ...Query[]];
};

export type Board = Json<Omit<Dashboard, "panels">> & {
  panels: (
    | Json<RowPanel>
    | Of<"timeseries", Timeseries, GraphFieldConfig>
    | Of<"stat", Stat, Record<string, never>>
    | Of<"table", Table, Record<string, never>>
  )[];
};
