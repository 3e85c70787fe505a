package main

import (
	"fmt"
	"image/color"
	"os"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The drawing is four panels: one layer and three layers side by side, the load
// above (on a logarithmic scale) and the calls that ended well below.

// colours are fixed by scenario, apart in hue and in lightness.
func colours() map[string]color.Color {
	return map[string]color.Color{
		"loop": color.RGBA{R: 0xd6, G: 0x27, B: 0x28, A: 0xff}, "loop3": color.RGBA{R: 0xd6, G: 0x27, B: 0x28, A: 0xff},
		"until": color.RGBA{R: 0x8c, G: 0x56, B: 0x4b, A: 0xff}, "retry": color.RGBA{R: 0xff, G: 0x7f, B: 0x0e, A: 0xff},
		"parallel":  color.RGBA{R: 0xbc, G: 0x80, B: 0xbd, A: 0xff},
		"no-budget": color.RGBA{R: 0x7f, G: 0x7f, B: 0x7f, A: 0xff}, "no-budget3": color.RGBA{R: 0x7f, G: 0x7f, B: 0x7f, A: 0xff},
		"budget": color.RGBA{R: 0x1f, G: 0x4e, B: 0xb4, A: 0xff}, "budget3": color.RGBA{R: 0x1f, G: 0x4e, B: 0xb4, A: 0xff},
	}
}

// bin is how long the load is averaged for a point of a curve, and width how long
// calls arrive for a point of their success.
const (
	bin   = 4 * time.Second
	width = 5 * time.Second
)

func drawCurves(path string, results []result) error {
	var above, below []*plot.Plot
	for _, layers := range []int{1, 3} {
		var some []result
		for _, r := range results {
			if r.scenario.Layers == layers {
				some = append(some, r)
			}
		}
		if len(some) == 0 {
			continue
		}
		title := map[int]string{1: "one layer", 3: "three layers, one inside the other"}[layers]
		load, err := loadPanel(title, some)
		if err != nil {
			return fmt.Errorf("draw: %w", err)
		}
		good, err := goodPanel(some)
		if err != nil {
			return fmt.Errorf("draw: %w", err)
		}
		above, below = append(above, load), append(below, good)
	}
	return write(path, [][]*plot.Plot{above, below})
}

func write(path string, rows [][]*plot.Plot) error {
	canvas := vgsvg.New(13*vg.Length(len(rows[0]))*vg.Centimeter, 15*vg.Centimeter)
	tiles := draw.Tiles{Rows: len(rows), Cols: len(rows[0]), PadX: vg.Centimeter, PadY: vg.Centimeter / 2, PadTop: 6, PadBottom: 6, PadLeft: 6, PadRight: 12}
	for i, row := range plot.Align(rows, tiles, draw.New(canvas)) {
		for j, c := range row {
			rows[i][j].Draw(c)
		}
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	if _, err := canvas.WriteTo(file); err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	return file.Close()
}

// loadPanel shows requests a second at the service.
func loadPanel(title string, results []result) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = title
	p.Y.Label.Text = "requests/s at the service"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, powers()
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.TextStyle.Font.Size = 8
	p.Y.Min, p.Y.Max = 1, 400
	if err := outage(p, results[0].plan); err != nil {
		return nil, err
	}
	if err := level(p, results[0]); err != nil {
		return nil, err
	}
	for _, r := range results {
		var points plotter.XYs
		for at := time.Duration(0); at+bin <= r.end(); at += bin {
			rate := float64(r.requestsIn(at, at+bin)) / bin.Seconds()
			points = append(points, plotter.XY{X: (at + bin/2).Seconds(), Y: max(rate, p.Y.Min)})
		}
		if err := curve(p, r, points, r.scenario.Title); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max = 0, results[0].end().Seconds()
	return p, nil
}

// goodPanel shows how many of the calls that arrive end well.
func goodPanel(results []result) (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text = "seconds"
	p.Y.Label.Text = "calls that end well, %"
	p.Y.Min, p.Y.Max = -4, 104
	if err := outage(p, results[0].plan); err != nil {
		return nil, err
	}
	for _, r := range results {
		var points plotter.XYs
		for at := time.Duration(0); at+width <= r.end(); at += width {
			if n, good := r.callsIn(at, at+width); n > 0 {
				points = append(points, plotter.XY{X: (at + width/2).Seconds(), Y: 100 * per(good, n)})
			}
		}
		if err := curve(p, r, points, ""); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max = 0, results[0].end().Seconds()
	return p, nil
}

func curve(p *plot.Plot, r result, points plotter.XYs, name string) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = colours()[r.scenario.Name], 1.3
	if r.scenario.Budget {
		line.Width = 2.4
	}
	p.Add(line)
	if name != "" {
		p.Legend.Add(name, line)
	}
	return nil
}

// outage shades the time in which the service is down.
func outage(p *plot.Plot, when plan) error {
	from, to := when.Down.Seconds(), when.Up.Seconds()
	area, err := plotter.NewPolygon(plotter.XYs{{X: from, Y: p.Y.Min}, {X: to, Y: p.Y.Min}, {X: to, Y: p.Y.Max}, {X: from, Y: p.Y.Max}})
	if err != nil {
		return err
	}
	area.Color, area.Width = color.Gray{Y: 0xea}, 0
	p.Add(area)
	return nil
}

// level is what the service can serve when it is back.
func level(p *plot.Plot, r result) error {
	line, err := plotter.NewLine(plotter.XYs{{X: r.plan.Up.Seconds(), Y: r.plan.Capacity}, {X: r.end().Seconds(), Y: r.plan.Capacity}})
	if err != nil {
		return err
	}
	line.Dashes = []vg.Length{3, 3}
	p.Add(line)
	p.Legend.Add("what it can serve", line)
	return nil
}

// powers marks a logarithmic axis.
func powers() plot.ConstantTicks {
	return plot.ConstantTicks{{Value: 1, Label: "1"}, {Value: 10, Label: "10"}, {Value: 100, Label: "100"}, {Value: 1000, Label: "1000"}}
}
