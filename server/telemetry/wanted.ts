import type { Options } from './telemetry.ts'

/** `environment`: of the workers. Returns whether anything is to be sent: what that takes is loaded then. */
export function wantsTelemetry ({ telemetry }: { telemetry: Options },
  { OTEL_EXPORTER_OTLP_ENDPOINT: all, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: metrics,
    OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: logs }: Record<string, string | undefined>): boolean
{
  return telemetry.journald === 'on' || telemetry.syslog !== undefined ||
    (telemetry.otlp === 'on' && Boolean(all || metrics || logs))
}
