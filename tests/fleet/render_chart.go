// render_chart renders a Helm chart as Helm's engine does, with the libraries that Helm uses: Go's text/template, sprig,
// and YAML by way of JSON (so that every number is a float64). It is no Helm: no dependencies, hooks, lookups or
// subcharts, and values arrive merged.
//
//	render_chart CHART RELEASE NAMESPACE <values.yaml
//
// Prints one JSON object: the text of each template by its name.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/ghodss/yaml"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render_chart:", err)
		os.Exit(1)
	}
}

func functions(all *template.Template) template.FuncMap {
	f := sprig.TxtFuncMap()
	delete(f, "env")
	delete(f, "expandenv")
	f["toYaml"] = func(v interface{}) string {
		text, err := yaml.Marshal(v)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(text), "\n")
	}
	f["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	f["required"] = func(warning string, v interface{}) (interface{}, error) {
		if text, is := v.(string); v == nil || (is && text == "") {
			return v, fmt.Errorf("%s", warning)
		}
		return v, nil
	}
	return f
}

func read(path string, out interface{}) {
	text, err := os.ReadFile(path)
	must(err)
	must(yaml.Unmarshal(text, out))
}

// Helm calls the fields of Chart.yaml by their names in Go: appVersion is AppVersion.
func chartOf(folder string) map[string]interface{} {
	fields := map[string]interface{}{}
	chart := map[string]interface{}{}
	read(filepath.Join(folder, "Chart.yaml"), &fields)
	for name, value := range fields {
		chart[strings.ToUpper(name[:1])+name[1:]] = value
	}
	return chart
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: render_chart CHART RELEASE NAMESPACE <values.yaml")
		os.Exit(2)
	}
	folder, values := os.Args[1], map[string]interface{}{}
	text, err := io.ReadAll(os.Stdin)
	must(err)
	must(yaml.Unmarshal(text, &values))
	chart := chartOf(folder)
	all := template.New("").Option("missingkey=zero")
	all.Funcs(functions(all))
	paths, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	must(err)
	base := fmt.Sprint(chart["Name"], "/templates")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must(err)
		_, err = all.New(base + "/" + filepath.Base(path)).Parse(string(text))
		must(err)
	}
	rendered := map[string]string{}
	for _, path := range paths {
		name := base + "/" + filepath.Base(path)
		if strings.HasPrefix(filepath.Base(path), "_") {
			continue
		}
		var out bytes.Buffer
		must(all.ExecuteTemplate(&out, name, map[string]interface{}{
			"Values": values, "Chart": chart,
			"Release":  map[string]interface{}{"Name": os.Args[2], "Namespace": os.Args[3], "Service": "Helm", "IsInstall": true, "Revision": 1},
			"Template": map[string]interface{}{"Name": name, "BasePath": base},
		}))
		// Helm's own check for missing values in output.
		rendered[filepath.Base(path)] = strings.ReplaceAll(out.String(), "<no value>", "")
	}
	must(json.NewEncoder(os.Stdout).Encode(rendered))
}
