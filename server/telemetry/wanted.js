/**
 * @param {{ telemetry: import('./telemetry.js').Options }} config
 * @param {Record<string, string | undefined>} environment  of the workers
 * @returns {boolean} whether anything is to be sent: what that takes is loaded then
 */
export function wantsTelemetry ({ telemetry }, { OTEL_EXPORTER_OTLP_ENDPOINT: all, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: metrics, OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: logs }) {
  return telemetry.journald === 'on' || telemetry.syslog !== undefined || (telemetry.otlp === 'on' && Boolean(all || metrics || logs))
}
