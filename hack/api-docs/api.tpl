{{- define "gvList" -}}
<!-- Written by `make generate`, from api/v1 and hack/api-docs. Change those. -->

# API reference
{{ range . }}
Everything but `spec.size` is optional. `kubectl explain memcached.spec` shows the same text for the version that is
installed.

In short, what a change of `spec` does to pods that run: `size` adds or removes some; `minReadySeconds` does nothing to
them; `imagePolicy` replaces them if that changes the image; every other field replaces all of them, one at a time, and
so empties the caches.

{{ range .SortedTypes }}{{ if markdownShouldRenderType . }}{{ template "type" . }}{{ end }}{{ end }}
{{- end }}
{{- template "bounds" }}
{{- end -}}

{{- define "type" -}}
## {{ .Name }}

{{ .Doc }}
{{ range .Members }}{{ if ne .Name "metadata" }}
### {{ .Name }}

{{ markdownRenderType .Type }}{{ with .Default }}, default `{{ . }}`{{ end }}

{{ .Doc }}
{{ end }}{{ end }}
{{- if .EnumValues }}
| value | meaning |
|---|---|
{{ range .EnumValues }}| `{{ .Name }}` | {{ markdownRenderFieldDoc (trim .Doc) }} |
{{ end }}{{ end }}
{{ end -}}
