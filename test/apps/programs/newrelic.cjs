exports.config = {
  app_name: ['gallery'],
  license_key: '0123456789012345678901234567890123456789',
  host: '127.0.0.1',
  logging: { enabled: false }
}
