export default { telemetry: false, devtools: { enabled: false }, compatibilityDate: '2026-01-01' }
